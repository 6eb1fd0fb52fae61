// Package onend calls a command of the shell or a URL when a run ended, as --on-end names it.
package onend
