// Package dlq writes, reads and selects dead letters: records that were moved
// aside to a dead-letter topic, with the story of their failure in headers.
//
// [Writer] puts a record on a dead-letter topic, byte for byte what it was and
// on the same partition number, and says when the copy is safe. [Read] goes
// through such a topic up to where it ended when the read began, [Filter] says
// which letters to show, and [Cursor] remembers the place, so that a list can be
// read page by page without moving under its reader.
//
// Kafka cannot delete one record. A topic beside, the [Ledger], therefore records what became of
// each letter, as one [Entry] by the letter's offset: redriven, and then succeeded or failed again,
// discarded, expired. A letter is open unless its entry resolves it. [Ledger.Letters] yields the
// open letters, [Ledger.Summarize] counts them by failure, [Ledger.Find] returns one letter,
// [Ledger.Discard] discards letters, and [Ledger.Prune] deletes those that are resolved.
// [Export] and [Import] are for archives.
package dlq
