// Package where reads filters of letters from text, for the server and for the program redrive:
// expressions over what a letter has, parts of a topic, and ranges of numbers. So both understand
// the same.
package where
