package consumers

import "time"

// Tier is a retry topic that a group uses for a topic.
type Tier struct {
	Topic string
	Delay time.Duration
	// Parked is how many offsets lie between the commits and the logs' ends, or Unknown. Markers of
	// transactions and the records of other groups count too, so it may be too high, never too low.
	Parked int64
	// NextDue is when the first of these records is due, of the oldest in each partition. It is
	// zero if it is not known, or none is parked; Seen.FindDue finds it.
	NextDue time.Time

	from map[int32]int64 // where the group is on the partitions that have such records
}
