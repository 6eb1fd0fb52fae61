package consumer

// laneState is the lane's place in its life. DESIGN.md, "Lanes", draws the transitions; only
// setState writes it.
type laneState uint8

const (
	// assigned; no record runs until its siblings and offsets are found
	laneStarting laneState = iota
	laneRunning            // records run
	// at a record whose disposition is Stop: nothing runs until the lane ends
	laneHalted
	laneDraining // being revoked: no record starts, running ones may finish
	laneGone     // revoked or lost: late results are ignored
)

// intake says whether the polled records of a source belong to the lane. DESIGN.md, "Intake",
// explains it.
type intake uint8

const (
	// kgo does not read the source for this lane; polled records belong to another lane
	intakeClosed intake = iota
	// kgo reads, or will read, from a position that is not the lane's; it delivers the records
	// again once that position is set
	intakeReseeking
	intakeOpen // polled records belong to the lane
)
