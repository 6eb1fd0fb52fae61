// Package forward writes copies of records to siblings, and says when they are safe.
//
// [Copies.Send] takes a copy and returns at once. The record that the copy stands for is finished,
// by [Origin.Finish], when all in-sync replicas have the copy, and never before; a copy that cannot
// be written is tried again until its lane is revoked. This is the place of a transaction, which
// would take copies and finished offsets together.
//
// The package knows its owner by [Lane], and reports by [Observer]; logs, hooks and metrics are the
// owner's. It knows nothing of groups, commits, tiers, handlers or failures, nor what a ledger
// holds.
//
// # States of a copy
//
//	in flight  kgo has it               acknowledged: safe
//	                                    too large: in line
//	                                    its partition is new to kgo: in flight, 12 times in 3 s
//	                                    another error: refused
//	in line    waits for its turn       its turn: alone
//	alone      in a batch of its own    acknowledged: safe
//	                                    too large: in line, with less or as a dead letter;
//	                                    dropped; or halted
//	                                    another error, or nothing left to omit: refused
//	refused    waits, 250 ms to 15 s    in flight; in line if it was alone
//	safe       its record is finished   off the books
//	dropped    the record is discarded  off the books; finished, or a note takes its place
//	halted     the lane halts on it     off the books, not finished
//
// Copies in line and refused ones are in the map of those that wait: kgo has none of them.
// [Copies.Drain] takes them off the books, and no copy waits afterwards. After [Copies.Close]
// nothing that comes back changes anything: the next owner has the records.
//
// A note is a copy for a ledger. It is given up, and its record finished, where no ledger takes it.
//
// # Locks
//
// The lane's lock guards the books. A copy has one owner at a time, which alone may change it:
// Send, kgo until its promise, a timer, or the line of the single sender. It changes hands under
// the lane's lock; a timer or line that finds it missing among those that wait lets go of it.
//
// The lane's lock is not held for calls of kgo, whose promises take it, nor for calls of [Observer]
// and [Lane.DiscardNote]. The locks of the clients, of stale topic ids and of the single sender are
// leaves: under them no other lock is taken, except by a client that is made. [Copies.Send] and
// kgo's promises wait for no broker; what does wait (making a client ready) has a goroutine of its
// own.
package forward
