package trace

// Measured is what a member's metrics say at its end: sums and counts, by name and the attributes
// that matter.
type Measured map[string]int64

// Member is what was done to a member, and what became of it. Times are in nanoseconds.
type Member struct {
	Job       Job
	Service   int // by its place among those of the run
	Began     int64
	Ended     int64 // 0: never
	Killed    bool
	Asked     bool  // it was asked to end
	Termed    int64 // when it was asked to end in order
	Suspended [][2]int64
	Err       error // with which its process ended
}
