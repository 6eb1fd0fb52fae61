// Package dlq writes, reads and selects dead letters: records that were moved
// aside to a dead-letter topic, with the story of their failure in headers.
//
// [Writer] puts a record on a dead-letter topic, byte for byte what it was and
// on the same partition number, and says when the copy is safe. [Read] goes
// through such a topic up to where it ended when the read began, [Filter] says
// which letters to show, and [Cursor] remembers the place, so that a list can be
// read page by page without moving under its reader.
//
// Kafka can't delete one record. What became of each letter is therefore written
// down in a topic beside, its [Ledger], as one [Entry] by the letter's offset:
// brought back, and then succeeded or failed again, discarded, expired. Letters
// of which nothing settles it are open: [Ledger.Letters] yields those,
// [Ledger.Summarize] counts them by what failed, [Ledger.Find] shows one,
// [Ledger.Discard] gives some up, and [Ledger.Prune] deletes what is settled.
// [Export] and [Import] are for archives.
package dlq
