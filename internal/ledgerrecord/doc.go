// Package ledgerrecord has the records of a ledger that are no entries about letters: those of
// redrive runs, the keys of discard reports, and the records of deleted letters.
package ledgerrecord
