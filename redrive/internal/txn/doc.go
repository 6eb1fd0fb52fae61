// Package txn owns the two transactional producers of a run and the fence around them.
//
// Whoever opens the producers of a dead-letter topic ([Open]) fences all others: what these have
// open is aborted, and what they write next is refused. [Writers.Fence] makes sure of that on the
// partitions themselves. It ends a transaction there as it ended elsewhere: a copy and the ledger's
// entry about it are visible together, or never.
//
// An error that wraps [ErrUncertain] means that the last transaction may be committed or not, or
// that another process has the producers now; only the ledger can tell. The package knows nothing
// of runs, plans or pace. Of the ledger's entries it reads where a copy is.
package txn
