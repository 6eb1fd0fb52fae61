package main

// outageCounts are what an outage did.
type outageCounts struct {
	Calls    int64 // while it lasted, and
	Ordinary int64 // the records offered in that time
	Dead     int64
	// Wait is the longest time in seconds from when a record was due by the pace until it was
	// handled, of those that never failed and were due while the outage lasted.
	Wait float64
	// Recovery is the time from the end of the outage until all records of its second half are
	// handled, in seconds.
	Recovery float64
}
