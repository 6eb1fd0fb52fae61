// Package book keeps, for each letter of a dead-letter topic, the few facts that counts, groups
// and lists need: when it failed, of what, and its state. So a page of a million letters reads the
// topic for the rows that it shows, and no further.
//
// A [Book] is filled and kept up by [Book.Refresh], through package dlq: its letters and states are
// those of [dlq.Ledger.Letters]. It takes some 20 bytes of memory for a letter.
package book
