package redrive

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/guard"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// Plan is a redrive that was not begun: which letters, frozen, and where they would
// go. It is valid for as long as the letters are open; what changed meanwhile is
// found out by the run.
type Plan struct {
	// Selection is what was asked for.
	Selection Selection
	// ID is that of the run that would be made of it.
	ID string
	// Created is when it was made.
	Created time.Time
	// Letters is how many would be redriven. ByClass, ByPartition and ByGroup have them by the
	// class of their last error (with "#" and the fingerprint where the class is "unclassified"),
	// by the partition of the dead-letter topic, and by failing group.
	Letters     int64
	ByClass     map[string]int64
	ByPartition map[int32]int64
	ByGroup     map[string]int64
	// Targets are the topics that they would go to.
	Targets map[string]int64
	// SeenBy are the groups that would get them, as far as can be told: groups that may not be
	// described are not among them.
	SeenBy []string
	// Watched are the retry topics in which the run looks for records that fail again: those of the
	// groups that the user may see. What fails into another one is taken for a success.
	Watched []string
	// Skipped are letters that fit and would not be redriven, by reason.
	Skipped map[string]int64
	// Warnings are for the operator to read.
	Warnings []string

	topics     *topics
	topicID    [16]byte // of the dead-letter topic
	toTier     bool     // the letters go to retry topics
	chosen     letters.Set
	unknown    int64 // of the letters, what became of them the last time
	duplicates []duplicate
	tiers      map[string]string
	by         map[destination]int64
	elsewhere  map[string]bool // the topics that have the values which letters lack
	oldest     time.Time
	unfit      error // of the first letter that can't be edited
	unread     unread
}

// duplicate is a copy of a letter of the same partition that is selected or resolved, and that has
// no entry of its own.
type duplicate struct {
	letters.Place
	letter int64
}

// The reasons for which letters that fit are left out.
const (
	SkippedTooOften = "too many redrives" // it was redriven MaxRedrives times
	// siding did not write it, or its group is not known: name a target
	SkippedNoGroup = "no group"
	// its value was left out, and the original record is gone
	SkippedValueLost = "value lost"
	SkippedEdit      = "edit failed"              // the patch can't be applied to its value
	SkippedExpired   = "expired"                  // retention took it first
	SkippedTooLarge  = "too large for the target" // as the broker says, of it alone
	// the same, for its timestamp or what the topic asks of records
	SkippedRefused = "refused by the target"
	// it was discarded, or another tool redrove it
	SkippedResolved = "settled meanwhile"
)

// unclassified is the class of errors that have no type of their own; only their fingerprint tells
// them apart.
const unclassified = "unclassified"

// classKey is what classes are compared by.
func classKey(class, fingerprint string) string {
	if class == unclassified {
		return class + "#" + fingerprint
	}
	return class
}

// Duration is how long the sending would take at a pace, without waiting for outcomes.
func (p *Plan) Duration(pace Pace) time.Duration {
	pace = pace.withDefaults()
	if pace.Rate <= 0 {
		return 0
	}
	left := float64(p.Letters)
	ramp := pace.Ramp.Seconds()
	if inRamp := 0.55 * pace.Rate * ramp; left <= inRamp {
		// From a tenth to all of the rate: after a time t as many are sent as rate × (0.1 t + 0.45
		// t²/ramp).
		return lasting(ramp * (math.Sqrt(0.01+1.8*left/(pace.Rate*ramp)) - 0.1) / 0.9)
	}
	return lasting(ramp + (left-0.55*pace.Rate*ramp)/pace.Rate)
}

// lasting is a duration of so many seconds, or the longest that there is.
func lasting(seconds float64) time.Duration {
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

func init() { guard.RefuseUnfinished = refuseUnfinished }

// refuseUnfinished returns a *RefusedError if a ledger, as it was read last, has an unfinished run.
func refuseUnfinished(ledger *dlq.Ledger) error {
	topic := ledger.Topic()
	for rec, err := range recordsIn(ledger) {
		if err != nil {
			return within(topic, err)
		}
		if rec.State.Finished() {
			continue
		}
		o := rec.outcome(topic)
		how := fmt.Sprintf("is %s, its last heartbeat was at %s: resume or abort it first", rec.State, rec.Heartbeat.UTC().Format(time.RFC3339))
		if rec.Stopped != nil {
			how = fmt.Sprintf("was stopped at %s: resume or abort it first", rec.Stopped.UTC().Format(time.RFC3339))
		} else if since := time.Since(rec.Heartbeat); since <= lively {
			how = fmt.Sprintf("is %s, its last heartbeat was %s ago: wait until it ends", rec.State, max(0, since).Round(time.Second))
		}
		return &RefusedError{Topic: topic, Reason: RefusedUnfinished, Run: &o, Detail: fmt.Sprintf("run %s/%s of %s %s", topic, rec.ID, rec.Owner, how)}
	}
	return nil
}

// take takes a letter into the plan, or notes why not; it reports which.
func (p *Plan) take(l *dlq.Letter, mergePatch func(value, patch []byte) ([]byte, error)) bool {
	most := p.Selection.MaxRedrives
	set(&most, defaultMaxRedrives)
	switch {
	case most >= 0 && l.Meta.Redrive.Count >= most:
		p.Skipped[SkippedTooOften]++
		return false
	case p.toTier && (l.MetaErr != nil || l.Meta.Group == "" || l.Meta.Original.Topic != p.topics.source):
		p.Skipped[SkippedNoGroup]++
		return false
	case l.Meta.ValueOmitted: // a run sees whether an edit fits what it reads elsewhere
		if topic := l.Meta.Original.Topic; topic != "" && p.Selection.Edit.Value == nil {
			p.elsewhere[topic] = true
		}
	default:
		if _, err := p.Selection.Edit.valueOf(l.Record.Value, mergePatch); err != nil {
			if p.Skipped[SkippedEdit]++; p.unfit == nil {
				p.unfit = fmt.Errorf("letter %s/%d/%d: %w", l.Record.Topic, l.Record.Partition, l.Record.Offset, err)
			}
			return false
		}
	}
	if !p.chosen.Add(letters.At(l.Record.Partition, l.Record.Offset)) {
		return false
	}
	p.Letters++
	p.ByClass[classKey(l.Meta.Class, l.Meta.Fingerprint)]++
	p.ByPartition[l.Record.Partition]++
	p.ByGroup[l.Meta.Group]++
	p.by[destination{l.Meta.Group, homeOf(l, p.topics.source)}]++
	if at := originalTime(l); p.oldest.IsZero() || at.Before(p.oldest) {
		p.oldest = at
	}
	return true
}

// homeOf is the partition on which a letter's record has its lane: that of the source, for life.
func homeOf(l *dlq.Letter, source string) int32 {
	if l.Meta.Original.Topic == source {
		return l.Meta.Original.Partition
	}
	return l.Record.Partition
}

func (p *Plan) mostPartition() (most int32) {
	for d := range p.by {
		most = max(most, d.partition)
	}
	return most
}

// topicError is an error that names the dead-letter topic.
type topicError struct {
	topic string
	err   error
}

func (e *topicError) Error() string { return fmt.Sprintf("redrive: %s: %v", e.topic, e.err) }
func (e *topicError) Unwrap() error { return e.err }

// within names the topic in an error that does not.
func within(topic string, err error) error {
	_, refused := errors.AsType[*RefusedError](err)
	_, reappeared := errors.AsType[*FailedAgainError](err)
	_, named := errors.AsType[*topicError](err)
	if err == nil || refused || reappeared || named {
		return err
	}
	return &topicError{topic, err}
}

// unresolved are the letters of a plan that are still open, and how many are not.
func (p *Plan) unresolved(ledger *dlq.Ledger) (left letters.Set, skipped map[string]int64) {
	left, skipped = letters.Set{}, map[string]int64{}
	for at := range p.chosen.All() {
		if ledger.State(at.Partition, at.Offset).Resolves() {
			skipped[SkippedResolved]++
		} else {
			left.Add(at)
		}
	}
	return left, skipped
}

// follows reports whether it would be known what becomes of a letter of a group.
func (p *Plan) follows(group string) bool {
	return group != "" && (p.toTier || p.Selection.Target.Topic == p.topics.source)
}

// unfollowed is how many letters of the plan would not be followed, and why.
func (p *Plan) unfollowed() (n int64, why string) {
	switch target := p.Selection.Target.Topic; {
	case p.toTier:
		return 0, ""
	case target != p.topics.source:
		return p.Letters, fmt.Sprintf("%s is another topic than %s, where they failed", target, p.topics.source)
	default:
		return p.ByGroup[""], "they name no group"
	}
}

func groupsOf(p *Plan) (groups []string) {
	for g := range p.ByGroup {
		if g != "" {
			groups = append(groups, g)
		}
	}
	return groups
}

func classesOf(p *Plan) (classes []string) {
	for c := range p.ByClass {
		classes = append(classes, c)
	}
	return classes
}

// originalTime is when a letter's record was first written.
func originalTime(l *dlq.Letter) time.Time {
	if at := l.Meta.Original.Timestamp; !at.IsZero() {
		return at
	}
	return l.Record.Timestamp
}
