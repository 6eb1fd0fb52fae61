// Package output writes what the verbs print: data to stdout as a table, a JSON array or JSON
// lines, and words to stderr.
//
// Records come from anywhere, so none of their control characters reaches a terminal: tables, words
// and JSON show them escaped. A reader of the JSON gets the original text.
package output
