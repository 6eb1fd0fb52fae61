// Package letterindex keeps the few facts of each dead letter that counts, groups and lists need,
// in some 20 bytes. The facts are when it failed, of what, and its state. So a page of a million
// letters reads the topic for the rows that it shows, and no further.
//
// A [Index] is filled and kept up by [Index.Refresh], through package dlq: its letters and states
// are those of [dlq.Ledger.Letters]. It takes some 20 bytes of memory for a letter.
package letterindex
