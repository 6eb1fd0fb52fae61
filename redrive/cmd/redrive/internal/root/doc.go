// Package root is the command line: it puts the verbs together, has the help, completion and errors
// of the line, and ends the program with a message and an exit code.
package root
