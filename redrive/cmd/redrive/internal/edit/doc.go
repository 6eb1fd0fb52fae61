// Package edit turns the flags that change redriven records into a redrive.Edit. The letters in the
// dead-letter topic stay as they are.
package edit
