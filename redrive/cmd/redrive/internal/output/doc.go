// Package output writes what the verbs have to say: data to stdout as a table, a JSON array or JSON lines, and words to
// stderr.
//
// What is in Kafka was written by anybody, so no control character of it reaches a terminal: tables and words show it
// escaped, and so does JSON, which remains the same text to its reader.
package output
