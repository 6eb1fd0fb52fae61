// Package txn owns the two transactional producers of a run and the fence around them.
//
// A process that opens the producers of a dead-letter topic ([Open]) fences all others: their open
// transactions are aborted, and their later writes are refused. [Writers.Fence] enforces that on
// the partitions themselves. It ends a transaction there as the transaction ended elsewhere: a copy
// and its ledger entry are visible together, or never.
//
// An error that wraps [ErrUncertain] means that the last transaction may be committed or not, or
// that another process owns the producers now; only the ledger says which. The package knows
// nothing of runs, plans or pace. It reads only a copy's position from the ledger's entries.
package txn
