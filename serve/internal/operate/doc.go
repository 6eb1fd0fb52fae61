// Package operate does what people ask of the server: it lists and shows letters, plans, begins and
// ends runs, discards and reopens letters, and pauses rules. Whoever asks is a value, and who may
// not do something gets an error that says so.
package operate
