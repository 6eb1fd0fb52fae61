// Package dlq writes, reads, exports and imports dead letters, and keeps the ledger of their
// outcomes. A dead letter is a record that was copied to a dead-letter topic, with headers about
// its failure.
//
// [Writer] copies a record to a dead-letter topic, byte for byte and with the same partition
// number, and reports when the copy is safe. [Read] yields the letters of a topic up to the end
// that it had when the read began. [Filter] selects letters. [Cursor] keeps the place between
// pages, so that later letters do not change a list.
//
// Kafka cannot delete one record. So the topic of a [Ledger] records what became of each letter, in
// one [Entry] by the letter's offset: redriven, then succeeded or failed again, discarded, expired.
// A letter is open unless its entry resolves it. [Ledger.Letters] yields the open letters,
// [Ledger.Summarize] counts them by failure, [Ledger.Find] returns one letter, [Ledger.Discard]
// discards letters, and [Ledger.Prune] deletes those that are resolved. [Export] and [Import] are
// for archives.
package dlq
