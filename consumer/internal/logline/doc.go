// Package logline makes every line of a log readable, and one line, whichever handler writes it.
package logline
