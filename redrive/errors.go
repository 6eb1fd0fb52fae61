package redrive

// Refusals and failures.

import (
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Refusal is the reason why a run was not begun or not claimed.
type Refusal string

// The refusals. Each leaves everything unchanged.
const (
	// the topic has an unfinished run, to be resumed or aborted first
	RefusedUnfinished Refusal = "unfinished run"
	// no open letter fits, or none of the fitting letters can go to the target
	RefusedNothing Refusal = "nothing selected"
	// the failing group has no retry topic with a committed offset
	RefusedNoTier Refusal = "no tier"
	// the target's group has no members as a run begins, and Target.Wait is false
	RefusedNoMembers Refusal = "no members"
	// the target is compacted, so an old value would become the latest of its key
	RefusedCompacted Refusal = "compacted target"
	// all fitting letters were redriven Selection.MaxRedrives times
	RefusedTooOften Refusal = "too many redrives"
	// the target or the ledger has fewer partitions than it needs
	RefusedPartitions Refusal = "too few partitions"
	// the edit fails for every letter that fits
	RefusedEdit Refusal = "edit failed"
	// the target's retention would delete the copies at once
	RefusedRetention Refusal = "retention"
	// the topic does not exist, or cannot be the target of a redrive
	RefusedTarget Refusal = "no target"
	// the group's retry topics seem to have other names, so new failures would go unnoticed
	RefusedNaming Refusal = "another naming"
	// Edit.Value is for a run of one letter
	RefusedMany Refusal = "too many letters"
	// the run's record would not fit into the ledger: too many classes of letters, or too large an
	// edit
	RefusedLarge Refusal = "too large a run"
	// a group finishes no records of the source, so there is no share of its traffic
	RefusedNoTraffic Refusal = "no traffic"
	// a process owns the run, or may own it, and a Condition protects it
	RefusedOwned Refusal = "run held"
)

// RefusedError reports why a run was not begun or not claimed. Nothing was changed.
type RefusedError struct {
	// Topic is the dead-letter topic.
	Topic string
	// Reason is one of the Refused constants.
	Reason Refusal
	// Detail describes the finding and the remedy.
	Detail string
	// Run is the unfinished run, for RefusedUnfinished and RefusedOwned.
	Run *Outcome
	// Groups are those to which no letter can come home, sorted, for RefusedNoTier and
	// RefusedNoMembers. Letters of other groups are refused with theirs only.
	Groups []string
}

// Error names the topic, the reason, and the remedy.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("redrive: %s: refused: %s: %s", e.Topic, e.Reason, e.Detail)
}

// FailedAgainError reports that a run aborted itself because its errors occur again. The run sends
// nothing more. Letters that were sent stay on their target, and their outcomes still become known.
type FailedAgainError struct {
	// Topic is the dead-letter topic and Run the run's id.
	Topic, Run string
	// Cause describes the failures.
	Cause string
	// Seen are the failed records that the run observed, up to ten.
	Seen []Failure
}

// Failure is a record that failed while a run watched.
type Failure struct {
	// Record is the position of the failed record's copy in a retry topic or the dead-letter topic,
	// as topic/partition/offset.
	Record string
	// Letter is the position of the redriven letter; empty for new traffic.
	Letter string
	// Class, Fingerprint and Message describe the error.
	Class, Fingerprint, Message string
	// At is the copy's timestamp: the broker's if the topic uses log-append time.
	At time.Time
}

// Error names the topic, the run and the cause.
func (e *FailedAgainError) Error() string {
	return fmt.Sprintf("redrive: %s/%s aborted: %s", e.Topic, e.Run, e.Cause)
}

// DeniedError reports that the user lacks a permission. Operation is the operation to grant, in the
// words of Kafka's tools: READ, WRITE, DESCRIBE and so on. Resource is topic, group,
// transactional-id or cluster, and Name is the resource's name. Err is the broker's answer, and nil
// if the permission was checked beforehand; Unwrap returns it.
type DeniedError = permission.DeniedError

// ErrTaken is wrapped by the error of a run that another process resumed or aborted. This process
// has written nothing since, and will write nothing.
var ErrTaken = errors.New("another process owns the run now")

// ErrNoRun is wrapped by the error about a run that is not in the ledger.
var ErrNoRun = errors.New("there is no such run")
