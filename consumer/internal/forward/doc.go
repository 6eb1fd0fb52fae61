// Package forward writes copies of records to siblings, and reports when they are safe.
//
// [Copies.Send] takes a copy and returns at once. When all in-sync replicas have the copy, and
// never before, [Origin.Finish] finishes its original record. A copy that cannot be written is
// tried again until its lane is revoked. A transaction over copies and finished offsets would have
// its place here.
//
// The package calls its owner through [Lane], and reports through [Observer]. Logs, hooks and
// metrics are the owner's.
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
// Copies in line and refused copies are in the waiting map: kgo has none of them. [Copies.Drain]
// takes them off the books, and no copy waits afterwards. After [Copies.Close] promises change
// nothing: the next owner has the records.
//
// A note is a copy for a ledger. If no ledger accepts it, it is abandoned and its record finished.
//
// # Locks
//
// The lane's lock guards the books. A copy has one owner at a time, which alone may change it:
// Send, kgo until its promise, a timer, or the line of the single sender. Ownership changes under
// the lane's lock. A timer or line lets go of a copy that is no longer in the waiting map.
//
// The lane's lock is not held for calls of kgo, whose promises take it, nor for calls of [Observer]
// and [Lane.DiscardNotes]. The locks of the clients, of stale topic ids and of the single sender
// are leaves: no other lock is taken under them, except while a client is made. [Copies.Send] and
// kgo's promises wait for no broker. Making a client ready waits, and has a goroutine of its own.
package forward
