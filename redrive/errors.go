package redrive

import (
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Refusal is why a run does not begin, or is not taken.
type Refusal string

// The refusals. Each leaves everything as it was.
const (
	// the topic has a run that must be resumed or aborted first
	RefusedUnfinished Refusal = "unfinished run"
	RefusedNothing    Refusal = "nothing selected" // no open letter fits, or none that can go there
	// the failing group has no retry topic with a committed offset
	RefusedNoTier Refusal = "no tier"
	// nobody would run what is sent, and the run was not told to wait
	RefusedNoMembers Refusal = "no members"
	// an old value would become the latest of its key
	RefusedCompacted  Refusal = "compacted source"
	RefusedTooOften   Refusal = "too many redrives"
	RefusedPartitions Refusal = "too few partitions" // of the target, or of the ledger
	// the patch can't be applied to any letter that fits
	RefusedEdit Refusal = "edit failed"
	// of the target, which would delete the copies at once
	RefusedRetention Refusal = "retention"
	// the topic is not there, or is not one to bring letters back to
	RefusedTarget Refusal = "no target"
	// the group's retry topics seem to be named otherwise, and what fails again would not be seen
	RefusedNaming Refusal = "another naming"
	RefusedMany   Refusal = "too many letters" // a new value is for one
	// a process has the run, or may have it, and a Condition says to leave it there
	RefusedOwned Refusal = "run held"
)

// RefusedError says why a run does not begin. Nothing was changed.
type RefusedError struct {
	// Topic is the dead-letter topic.
	Topic string
	// Reason is one of the constants.
	Reason Refusal
	// Detail says what was found, and what to do.
	Detail string
	// Run is the unfinished run, for RefusedUnfinished and RefusedOwned.
	Run *Outcome
}

// Error names the topic, the reason, and what to do.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("redrive: %s: refused: %s: %s", e.Topic, e.Reason, e.Detail)
}

// FailedAgainError means that a run aborted itself, because what it redrives fails again. Nothing
// more is sent; letters that were sent stay, and their outcomes still become known.
type FailedAgainError struct {
	// Topic is the dead-letter topic and Run the run's id.
	Topic, Run string
	// Cause says what reappeared.
	Cause string
	// Seen are the records that were seen to fail, up to ten.
	Seen []Failure
}

// Failure is a record that failed while a run looked.
type Failure struct {
	// Record is the copy that shows it: topic, partition and offset, in a retry topic or the
	// dead-letter topic.
	Record string
	// Letter is the letter that was redriven; empty for new traffic.
	Letter string
	// Class, Fingerprint and Message are of the error.
	Class, Fingerprint, Message string
	// At is when the copy was written, by the broker where the topic has its time.
	At time.Time
}

// Error says what reappeared.
func (e *FailedAgainError) Error() string {
	return fmt.Sprintf("redrive: %s/%s aborted: %s", e.Topic, e.Run, e.Cause)
}

// DeniedError names the permission that the user lacks. Its field Operation is to be
// granted, by its name in Kafka's tools: READ, WRITE, DESCRIBE, … Resource is topic,
// group, transactional-id or cluster, and Name its name. Err, which it unwraps to, is
// the broker's answer; it is nil if the permission was checked beforehand.
type DeniedError = permission.DeniedError

// ErrTaken is wrapped by the error of a run that another process resumed or aborted meanwhile: this
// process has written nothing since, and will not.
var ErrTaken = errors.New("another process has the run now")

// ErrNoRun is wrapped by errors about a run that the ledger does not know.
var ErrNoRun = errors.New("there is no such run")
