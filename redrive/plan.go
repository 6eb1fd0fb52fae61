package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/guard"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/resolved"
)

// Plan is a frozen selection of letters and their targets, before the run. It is valid while the
// letters are open. The run detects changes since the plan. A plan can be stored as JSON, and be
// run by another process: see [Plan.MarshalJSON].
type Plan struct {
	// Selection is the argument of [Redriver.Plan].
	Selection Selection
	// ID is the id of the run that [Redriver.Run] makes of the plan.
	ID string
	// Created is the time of the plan.
	Created time.Time
	// Letters is the number of selected letters. ByClass splits it by the class of the last error;
	// class "unclassified" is followed by "#" and the fingerprint. ByPartition splits it by
	// partition of the dead-letter topic, and ByGroup by failing group.
	Letters     int64
	ByClass     map[string]int64
	ByPartition map[int32]int64
	ByGroup     map[string]int64
	// Targets is the number of letters by target topic.
	Targets map[string]int64
	// SeenBy are the groups that would read the copies, without groups that the user may not
	// describe.
	SeenBy []string
	// Watched are the retry topics in which the run watches for new failures. Retry topics that the
	// user may not see are missing, and letters that fail into them count as succeeded.
	Watched []string
	// Skipped counts, by reason, letters that fit and would not be redriven.
	Skipped map[string]int64
	// Warnings are notices for the operator.
	Warnings []string

	values     Values          // nil in a stored plan, whose new value is written already
	topics     *topics         // nil in a stored plan
	stored     *storedNames    // nil in a plan of this process
	topicID    [16]byte        // of the dead-letter topic
	epochs     map[int32]int32 // by partition, of its letters and duplicates: see dlq.Entry.Epochs
	toTier     bool            // the letters go to retry topics
	chosen     letters.Set
	unknown    int64 // letters whose last outcome is unknown
	duplicates []duplicate
	tiers      map[string]string
	by         map[destination]int64
	elsewhere  map[string]bool // the topics with the original records of letters without a value
	oldest     time.Time
	unfit      error // of the first letter to which the edit cannot be applied
	partitions int   // of the source, or of the named target; -1 if unknown
	home       *homes
	first      map[string]string     // by reason, the first letter that is skipped
	homeless   map[destination]int64 // letters for which there is no retry topic
	unread     string                // a warning
	absent     []string              // the groups without members
	resolved   string                // what became of the letters that the filter names
}

// duplicate is a second letter of the same failure as a letter of the same partition. That letter
// is selected or resolved, and the duplicate has no entry.
type duplicate struct {
	letters.Place
	letter int64
}

// The reasons for which a run skips letters that fit.
const (
	// the record was redriven MaxRedrives times
	SkippedTooOften = "too many redrives"
	// the letter names no group: another program wrote it. A named target takes it.
	SkippedNoGroup = "no group"
	// the headers of the letter are damaged. A named target takes it.
	SkippedDamaged = "damaged headers"
	// the letter is of another source topic: it was imported, or moved. A named target takes it.
	SkippedOtherSource = "another source topic"
	// the source, or the named target, does not have the partition of the letter: it was recreated
	// with fewer, or the letter is forged
	SkippedNoPartition = "no such partition"
	// no retry topic has a committed offset of the letter's group for its partition, while others
	// of the letters have one
	SkippedNoTier = "no retry topic"
	// the letter has no value, and the original record is gone
	SkippedValueLost = "value lost"
	// the patch cannot be applied to the value
	SkippedEdit = "edit failed"
	// retention deleted the letter
	SkippedExpired = "expired"
	// the broker refused this one copy as too large
	SkippedTooLarge = "too large for the target"
	// the broker refused this one copy for its timestamp, or for another rule of the topic
	SkippedRefused = "refused by the target"
	// an operator discarded the letter, or another run resolved it. The text is in ledgers of
	// earlier versions.
	SkippedResolved = "resolved meanwhile"
)

// maxNamed is how many letters a warning names.
const maxNamed = 10

// unclassified is the class of errors without a type of their own. Only their fingerprints
// distinguish them.
const unclassified = "unclassified"

// classKey returns the key by which classes are compared.
func classKey(class, fingerprint string) string {
	if class == unclassified {
		return class + "#" + fingerprint
	}
	return class
}

// Duration estimates the time for sending all letters at a pace, without waits for outcomes. It is
// 0 if the rate has no limit.
func (p *Plan) Duration(pace Pace) time.Duration {
	pace = pace.withDefaults()
	if pace.Rate <= 0 {
		return 0
	}
	left := float64(p.Letters)
	ramp := pace.Ramp.Seconds()
	inRamp := 0.55 * pace.Rate * ramp
	seconds := ramp + (left-inRamp)/pace.Rate
	if left <= inRamp {
		// The rate grows from a tenth to the full rate, so rate × (0.1 t + 0.45 t²/ramp) letters
		// are sent after a time t.
		seconds = ramp * (math.Sqrt(0.01+1.8*left/(pace.Rate*ramp)) - 0.1) / 0.9
	}
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

func init() { guard.RefuseUnfinished = refuseUnfinished }

// refuseUnfinished returns a *RefusedError if the ledger, as last read, has an unfinished run.
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
		if !rec.Stopped.IsZero() {
			how = fmt.Sprintf("was stopped at %s: resume or abort it first", rec.Stopped.UTC().Format(time.RFC3339))
		} else if now := time.Now(); rec.isFresh(now) {
			how = fmt.Sprintf("is %s, its last heartbeat was %s ago: wait until it ends", rec.State, max(0, now.Sub(rec.Heartbeat)).Round(time.Second))
		}
		return &RefusedError{Topic: topic, Reason: RefusedUnfinished, Run: &o, Detail: fmt.Sprintf("run %s/%s of %s %s", topic, rec.ID, rec.Owner, how)}
	}
	return nil
}

// take adds a letter to the plan, or counts the reason for skipping it. It reports whether it added
// the letter.
func (p *Plan) take(ctx context.Context, l *dlq.Letter) bool {
	l = l.Own() // a letter of another program is sent as it stands
	most := p.Selection.MaxRedrives
	set(&most, defaultMaxRedrives)
	switch {
	case most >= 0 && l.Meta.Redrive.Count >= most:
		return p.skip(SkippedTooOften, l)
	case p.toTier && l.Damaged():
		return p.skip(SkippedDamaged, l)
	case p.toTier && l.Meta.Group == "":
		return p.skip(SkippedNoGroup, l)
	case p.toTier && l.Meta.Original.Topic != p.topics.source:
		return p.skip(SkippedOtherSource, l)
	}
	to := destination{l.Meta.Group, homeOf(l, p.topics.source)}
	switch {
	case p.partitions >= 0 && int(to.partition) >= p.partitions:
		return p.skip(SkippedNoPartition, l)
	case p.toTier && p.home.lacks(to):
		p.homeless[to]++
		return p.skip(SkippedNoTier, l)
	case l.Meta.ValueOmitted: // the run applies the edit to the original value
		if topic := l.Meta.Original.Topic; topic != "" && p.Selection.Edit.Value == nil {
			p.elsewhere[topic] = true
		}
	default:
		value, err := p.Selection.Edit.valueBy(ctx, p.values, l.Record)
		if err != nil {
			if p.unfit == nil {
				p.unfit = fmt.Errorf("letter %s/%d/%d: %w", l.Record.Topic, l.Record.Partition, l.Record.Offset, err)
			}
			return p.skip(SkippedEdit, l)
		}
		if p.Selection.Edit.Value != nil { // of one letter
			p.Selection.Edit.written = value
		}
	}
	if !p.chosen.Add(letters.At(l.Record.Partition, l.Record.Offset)) {
		return false
	}
	p.saw(l.Record)
	p.Letters++
	p.ByClass[classKey(l.Meta.Class, l.Meta.Fingerprint)]++
	p.ByPartition[l.Record.Partition]++
	p.ByGroup[l.Meta.Group]++
	p.by[to]++
	if at := originalTime(l); p.oldest.IsZero() || at.Before(p.oldest) {
		p.oldest = at
	}
	return true
}

// addDuplicate adds a second letter of a failure.
func (p *Plan) addDuplicate(l *dlq.Letter) {
	p.duplicates = append(p.duplicates, duplicate{letters.At(l.Record.Partition, l.Record.Offset), l.CopyOf})
	p.saw(l.Record)
}

// saw stores the leader epoch of a letter. Metadata may be stale, and name fewer epochs than that:
// the letter would count as lost.
func (p *Plan) saw(r *kgo.Record) {
	if r.LeaderEpoch >= 0 {
		p.epochs[r.Partition] = max(p.epochs[r.Partition], r.LeaderEpoch+1)
	}
}

// skip counts a letter that stays. It returns false.
func (p *Plan) skip(why string, l *dlq.Letter) bool {
	if p.Skipped[why]++; p.Skipped[why] == 1 {
		p.first[why] = fmt.Sprintf("%s/%d/%d", l.Record.Topic, l.Record.Partition, l.Record.Offset)
	}
	return false
}

// leaveOut counts the letters of a destination that stay although the plan has them: a run skips
// them.
func (p *Plan) leaveOut(d destination, why string) {
	n := p.by[d]
	if delete(p.by, d); p.ByGroup[d.group] == n {
		delete(p.ByGroup, d.group)
	} else {
		p.ByGroup[d.group] -= n
	}
	p.Letters -= n
	if p.Skipped[why] += n; p.first[why] == "" {
		p.first[why] = fmt.Sprintf("partition %d of group %s", d.partition, d.group)
	}
}

// homeOf returns the partition of the letter's lane: the original record's partition of the source.
func homeOf(l *dlq.Letter, source string) int32 {
	if l.Meta.Original.Topic == source {
		return l.Meta.Original.Partition
	}
	return l.Record.Partition
}

// topicError adds the dead-letter topic's name to an error.
type topicError struct {
	topic string
	err   error
}

func (e *topicError) Error() string { return fmt.Sprintf("redrive: %s: %v", e.topic, e.err) }
func (e *topicError) Unwrap() error { return e.err }

// within adds the topic's name to an error, unless the error has it.
func within(topic string, err error) error {
	_, refused := errors.AsType[*RefusedError](err)
	_, failedAgain := errors.AsType[*FailedAgainError](err)
	_, named := errors.AsType[*topicError](err)
	if err == nil || refused || failedAgain || named {
		return err
	}
	return &topicError{topic, err}
}

// unresolved returns the letters of a plan that are still open, and counts the others by reason.
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

// describe returns what became of the letters of a small plan, after a colon.
func (p *Plan) describe(ctx context.Context, ledger *dlq.Ledger) string {
	var f dlq.Filter
	for at := range p.chosen.All() {
		if f.Ranges = append(f.Ranges, dlq.At(at.Partition, at.Offset)); len(f.Ranges) > maxNamed {
			break
		}
	}
	if how := resolved.Describe(ctx, ledger, &f); how != "" {
		return ": " + how
	}
	return ""
}

// follows reports whether the outcomes of a group's letters can be known.
func (p *Plan) follows(group string) bool {
	return group != "" && (p.toTier || p.Selection.Target.Topic == p.topics.source)
}

// unfollowed counts the letters whose outcomes cannot be known, and gives the reason.
func (p *Plan) unfollowed() (n int64, why string) {
	switch target := p.Selection.Target.Topic; {
	case p.toTier:
		return 0, ""
	case target != p.topics.source:
		return p.Letters, fmt.Sprintf("%s is neither the source topic %s nor its retry topic", target, p.topics.source)
	default:
		return p.ByGroup[""], "they name no group"
	}
}

// groups returns the groups that the letters name.
func (p *Plan) groups() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.ByGroup)), func(g string) bool { return g == "" })
}

// The bounds of times in JSON, a day off those of RFC 3339: a time zone may shift them.
var (
	earliest = time.Date(0, 1, 2, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)
)

// originalTime returns the timestamp of the original record. A time that JSON cannot hold is the
// earliest or the latest that it can: producers may set any.
func originalTime(l *dlq.Letter) time.Time {
	at := l.Meta.Original.Timestamp
	if at.IsZero() {
		at = l.Record.Timestamp
	}
	if at.Before(earliest) {
		return earliest
	} else if at.After(latest) {
		return latest
	}
	return at
}
