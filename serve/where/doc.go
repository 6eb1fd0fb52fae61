// Package where reads filters of letters from text, for the server and for the program redrive. A
// filter has expressions over the parts of a letter, headers, parts of a topic, and ranges of
// numbers. So both understand the same.
package where
