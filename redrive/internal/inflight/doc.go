// Package inflight tracks the letters of a run that were sent and have no outcome yet, with the
// position of each copy. It counts the other letters by outcome.
//
// A letter enters by [Letters.Sent]. [Letters.OnCopy] reports its copies and [Letters.Discard] a
// consumer's discard report, in any order, also before the letter enters. [Letters.Resolve]
// compares the letters with the committed offsets of their groups, and removes letters with an
// outcome:
//
//	the group has not passed its copy    none yet
//	it is a dead letter again            failed
//	the group passed it                  succeeded, or discarded if that was reported
//	that will never be known             unknown
//
// The outcome equals that of a full record of each letter's history, but takes some thirty bytes a
// letter. The package knows nothing of Kafka clients, runs or the ledger's format.
//
// Lock: Letters has a lock, because the watch and the sender use it concurrently. No method calls
// out under the lock, except Resolve for the groups' progress.
package inflight
