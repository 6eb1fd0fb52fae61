// Package inflight knows which letters of a run were sent and have no outcome yet, where the copy
// of each is, and counts what became of the others.
//
// A letter enters by [Letters.Sent]. Its copies are reported by [Letters.OnCopy], a consumer's
// discard report by [Letters.Discard], in any order and also before the letter entered.
// [Letters.Resolve] asks how far each group has committed, and takes out the letters that have an
// outcome:
//
//	the group has not passed its copy    none yet
//	it is a dead letter again            failed
//	the group passed it                  succeeded, or discarded if that was reported
//	that will never be known             unknown
//
// It promises the outcome that a record of everything about each letter would give, in some thirty
// bytes a letter. It knows nothing of Kafka clients, of runs or of the ledger's format.
//
// Lock: Letters has one, since the watch and the sender work on it at the same time. No method
// calls out while it is held, but for the progress that Resolve asks for.
package inflight
