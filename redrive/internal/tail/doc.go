// Package tail follows partitions, and shows the records of writers other than the run.
//
// A run writes more to the topics that it watches than all others: its copies and its entries.
// Reading these again would cost about as much as sending them. So the package sends its own fetch
// requests. It skips the acknowledged offsets of the run's records ([Tail.SkipRecords]), and
// batches with the run's producer ids ([Tail.SkipProducers]).
//
// It shows each record of another writer once, in the order of its partition, committed or not,
// even while other brokers hang. [Tail.Missed] reports partitions of which it may have missed a
// record. [Tail.WaitUntil] returns once everything below given offsets was shown. The package knows
// nothing of letters, runs or headers.
//
// Lock: a Tail has a lock for positions and losses. It shows records from one goroutine, without
// the lock.
package tail
