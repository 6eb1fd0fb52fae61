// Package watch has the verb that follows a dead-letter topic in a terminal.
package watch
