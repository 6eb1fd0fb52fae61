// Package onend calls what an operator named by --on-end: a command of the shell, or a URL.
package onend
