// Package tail follows partitions and shows the records of other writers than the run.
//
// A run writes more to the topics that it watches than everybody else: all of its copies and
// entries. To read these again would cost about as much as to send them. So the package fetches by
// itself and not through the client: it passes over the offsets that the answers to produce
// requests named ([Tail.Wrote]), and over batches that were written under the run's producer ids
// ([Tail.Skip]).
//
// It promises to show each record of another writer once, in the order of its partition, committed
// or not, also while other brokers hang; and to say so where it may have missed one
// ([Tail.Missed]). [Tail.Reach] returns once everything below some offsets was shown. It knows
// nothing of letters, runs or headers.
//
// Lock: a Tail has one, for positions and losses. Records are shown from one goroutine, without it.
package tail
