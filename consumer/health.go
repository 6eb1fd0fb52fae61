package consumer

import (
	"time"
)

// State is what a lane is doing, as health reports it.
type State string

const (
	// StateStarting: the lane's siblings and offsets are being found.
	StateStarting State = "starting"
	// StateRunning: records run, or there is nothing to do.
	StateRunning State = "running"
	// StateWaiting: everything that the lane holds waits for its time.
	StateWaiting State = "waiting"
	// StatePaused: by Consumer.Pause.
	StatePaused State = "paused"
	// StateBlocked: copies cannot be written, or records not read; the lane waits until they can.
	StateBlocked State = "blocked"
	// StateStuck: a handler runs past its timeout.
	StateStuck State = "stuck"
	// StateDraining: the partition is being given up.
	StateDraining State = "draining"
	// StateStopped: halted on a record whose disposition is Stop.
	StateStopped State = "stopped"
)

// Health is the state of a consumer.
//
// It is OK when no lane is blocked, stuck or stopped, or has been starting for more than a minute,
// none had to leave the value of a dead letter out, no topic is missing, and the consumer has
// neither been joining its group nor failed to commit for longer than the rebalance timeout
// (kgo.RebalanceTimeout, 1 m by default) and half a minute. None of the states should fail a
// liveness probe: a restart helps none of them, except perhaps stuck, where it runs the same record
// again. For readiness, Started is what to look at.
type Health struct {
	OK      bool         `json:"ok"`
	Started bool         `json:"started"` // the first assignment is there, see Ready
	Lanes   []LaneHealth `json:"lanes"`
	Group   GroupHealth  `json:"group"`
	// Missing are the topics that the consumer needs and that do not exist: deleted while it runs,
	// or never made. Health is not OK then.
	Missing []string `json:"missing,omitempty"`
}

// LaneHealth is the state of one lane: a source partition with its retry partitions.
type LaneHealth struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	State     State  `json:"state"`
	// when it came into this state, or when it was first seen to be
	Since    time.Time `json:"since"`
	Why      string    `json:"why,omitempty"`
	Queued   int       `json:"queued"`   // read and not run yet
	Parked   int       `json:"parked"`   // read from retry topics and not due yet
	Forwards int       `json:"forwards"` // copies on their way
	Running  int       `json:"running"`
	// dead letters written without their value, since the lane was assigned
	Omitted int           `json:"omitted"`
	Offsets []FeedOffsets `json:"offsets"`
}

// FeedOffsets are the positions of one physical partition.
type FeedOffsets struct {
	Topic     string `json:"topic"`
	Committed int64  `json:"committed"` // -1 when there is none
	Floor     int64  `json:"floor"`     // everything below is finished
	Next      int64  `json:"next"`      // everything below was read
	Pending   int    `json:"pending"`   // read and unfinished
}

// blockedAfter is how long copies may go unanswered before their lane counts as blocked: a
// partition without a leader gives no error, only silence.
const blockedAfter = 10 * time.Second

// joinsLate is what a join may take beyond the rebalance timeout, which is how long the group waits
// for its members.
const joinsLate = 30 * time.Second

// startsWithin is how long a lane may take to start: longer than an election, and than a broker
// takes to come back.
const startsWithin = time.Minute

// GroupHealth is how the consumer stands in its group.
type GroupHealth struct {
	// Joined tells a member from a consumer that is joining: for the first time, in a rebalance, or
	// since its session ended.
	Joined bool `json:"joined"`
	// Since is when that began, zero before Run and after it returned nil.
	Since time.Time `json:"since,omitzero"`
	// Why is what stands in the way of joining, where that is known.
	Why string `json:"why,omitempty"`
	// CommitsFailSince is when the first commit began of those that were not accepted since; zero
	// while commits are accepted, or there is nothing to commit.
	CommitsFailSince time.Time `json:"commits_fail_since,omitzero"`
	// CommitError is what the last one failed with.
	CommitError string `json:"commit_error,omitempty"`
}
