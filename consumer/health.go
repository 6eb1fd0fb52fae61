package consumer

import (
	"time"
)

// Health is the state of a consumer. OK is false if one of these holds:
//
//   - A needed topic is missing.
//   - A lane is blocked, stuck or stopped, or has been starting for more than a minute.
//   - A handler of a former lane ignores its cancellation, and so holds a slot of
//     Config.Concurrency.
//   - A lane has written a dead letter without its value.
//   - The consumer has been joining its group, losing its membership soon after each join, or
//     failing to commit, for longer than the rebalance timeout (kgo.RebalanceTimeout, 1 m by
//     default) plus half a minute.
//
// None of this should fail a liveness probe, since a restart does not help. Only stuck lanes and
// handlers may be an exception: a restart then runs the same records again. A readiness probe
// should check Started.
type Health struct {
	OK      bool         `json:"ok"`
	Started bool         `json:"started"` // Consumer.Ready is closed
	Lanes   []LaneHealth `json:"lanes"`
	Group   GroupHealth  `json:"group"`
	// Missing lists the topics that the consumer needs and that do not exist: they were deleted
	// while it runs, or never created. Health is not OK then.
	Missing []string `json:"missing,omitempty"`
	// Stuck lists the handlers that ignore their cancellation although their lanes were revoked or
	// lost, the oldest first. Each holds a slot of Config.Concurrency until it returns. Handlers of
	// present lanes that ignore their timeout make their lanes [StateStuck] instead.
	Stuck []StuckHandler `json:"stuck,omitempty"`
	// Topics lists the topics of which so many records fail that they are strained or held, see
	// [Breaker]. That is no reason for health not to be OK: the consumer does what it should, and a
	// restart of all processes would not help.
	Topics []TopicHealth `json:"topics,omitempty"`
}

// State is the state of a lane in health.
type State string

const (
	// StateStarting: siding looks for the lane's siblings and offsets; no record runs yet.
	StateStarting State = "starting"
	// StateRunning: records run, or the lane is idle.
	StateRunning State = "running"
	// StateWaiting: the lane holds only records that are not due yet, or a transaction that stays
	// open holds up one of its partitions. Why then begins with "open transaction". Or it holds as
	// many keys or records as it may (Config.HoldKeys): Why begins with "held keys".
	StateWaiting State = "waiting"
	// StatePaused: Consumer.Pause paused the topic.
	StatePaused State = "paused"
	// StateStrained: many records of the topic fail. All of its records run, and those that fail
	// wait for another try that costs no attempt. Why says what failed.
	StateStrained State = "strained"
	// StateHeld: nearly all records of the topic fail, and only probes run. Why says what failed.
	// No restart helps.
	StateHeld State = "held"
	// StateBlocked: copies cannot be written, records not be read, or no commit is accepted. The
	// lane waits until they can.
	StateBlocked State = "blocked"
	// StateStuck: a handler runs past its timeout.
	StateStuck State = "stuck"
	// StateDraining: the partition is being revoked.
	StateDraining State = "draining"
	// StateStopped: the lane halted on a record whose disposition is Stop.
	StateStopped State = "stopped"
)

// TopicHealth is the state of a topic that is strained or held, in this process. See [Breaker].
type TopicHealth struct {
	Topic string `json:"topic"`
	// State is [StateStrained] or [StateHeld].
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Share of Runs failed, when the topic came into its state: runs of records of the source.
	Share float64 `json:"share"`
	Runs  int64   `json:"runs"`
	// Class and LastError are those of the last failure.
	Class     string `json:"class"`
	LastError string `json:"last_error"`
	// Waiting is how many records wait: those that failed and, while the topic is held, those of
	// the source as well, as of the last fetch.
	Waiting int64 `json:"waiting"`
	// Probes is how many probes have ended since the topic was held. NextProbe is when the next
	// ones are due, and zero once one has succeeded. Without a record that could run, there is
	// none.
	Probes    int       `json:"probes,omitempty"`
	NextProbe time.Time `json:"next_probe,omitzero"`
	// Do is what an operator can do.
	Do string `json:"do"`
}

// StuckHandler is a handler that ignores its cancellation, by the position at which its record was
// read.
type StuckHandler struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Since     time.Time `json:"since"` // when its lane was revoked or lost
}

// LaneHealth is the state of one lane: a source partition with its retry partitions.
type LaneHealth struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	State     State  `json:"state"`
	// when the lane entered its state, or was first seen in it
	Since  time.Time `json:"since"`
	Why    string    `json:"why,omitempty"`
	Queued int       `json:"queued"` // read and not running yet
	// records that failed and wait in the partition, and those behind them: Config.HoldKeys
	Held     int `json:"held,omitempty"`
	Parked   int `json:"parked"`   // read from retry topics and not due yet
	Forwards int `json:"forwards"` // copies in flight
	Running  int `json:"running"`
	// dead letters written without their value since the lane was assigned
	Omitted int           `json:"omitted"`
	Offsets []FeedOffsets `json:"offsets"`
}

// FeedOffsets are the offsets of one physical partition.
type FeedOffsets struct {
	Topic     string `json:"topic"`
	Committed int64  `json:"committed"` // -1 when there is none
	Floor     int64  `json:"floor"`     // all records below are finished
	Next      int64  `json:"next"`      // all records below were read
	Pending   int    `json:"pending"`   // read and not finished
}

// blockedAfter is the time without an acknowledgement after which a lane counts as blocked. A
// partition without a leader causes no error, only silence.
const blockedAfter = 10 * time.Second

// joinsLate is the time that a join may take beyond the rebalance timeout, for which the group
// waits for its members.
const joinsLate = 30 * time.Second

// startsWithin is the time that a lane may take to start: longer than an election, or the restart
// of a broker.
const startsWithin = time.Minute

// GroupHealth is the state of the consumer's membership in its group.
type GroupHealth struct {
	// Joined is false while the consumer joins its group: for the first time, in a rebalance, or
	// after its session ended.
	Joined bool `json:"joined"`
	// Since is when the membership entered that state; zero before Run, and after Run returned nil.
	Since time.Time `json:"since,omitzero"`
	// Why is why the consumer cannot join, or loses its membership again and again, if known.
	Why string `json:"why,omitempty"`
	// CommitsFailSince is when the first of the commits began that have failed since the last
	// accepted one. It is zero while commits succeed, or there is nothing to commit.
	CommitsFailSince time.Time `json:"commits_fail_since,omitzero"`
	// CommitError is the error of the last failed commit.
	CommitError string `json:"commit_error,omitempty"`
}
