package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/guard"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
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
	// Letters is how many would be brought back. ByClass, ByPartition and ByGroup have them by the class of their last error (with
	// "#" and the fingerprint where the class is "unclassified"), by the partition of the dead-letter topic, and by failing group.
	Letters     int64
	ByClass     map[string]int64
	ByPartition map[int32]int64
	ByGroup     map[string]int64
	// Targets are the topics that they would go to.
	Targets map[string]int64
	// SeenBy are the groups that would get them, as far as can be told: groups that may not be described are not among them.
	SeenBy []string
	// Watched are the retry topics in which the run looks for records that fail again: those of the groups that the user may see. What
	// fails into another one is taken for a success.
	Watched []string
	// Skipped are letters that fit and would not be brought back, by reason.
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

// duplicate is a copy of a letter of the same partition that is chosen or settled, and of which no entry tells.
type duplicate struct {
	letters.Place
	letter int64
}

// The reasons for which letters that fit are left out.
const (
	SkippedTooOften  = "too many redrives"        // it was brought back MaxRedrives times
	SkippedNoGroup   = "no group"                 // siding did not write it, or its group is not known: name a target
	SkippedValueLost = "value lost"               // its value was left out, and the original record is gone
	SkippedEdit      = "edit failed"              // the patch can't be applied to its value
	SkippedExpired   = "expired"                  // retention took it first
	SkippedTooLarge  = "too large for the target" // as the broker says, of it alone
	SkippedRefused   = "refused by the target"    // the same, for its timestamp or what the topic asks of records
	SkippedResolved  = "settled meanwhile"        // somebody discarded it, or another tool brought it back
)

// unclassified is the class of errors that have no type of their own; only their fingerprint tells them apart.
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
		// From a tenth to all of the rate: after a time t as many are sent as rate × (0.1 t + 0.45 t²/ramp).
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

// Plan freezes a selection: it reads the ledger and the dead-letter topic once, up to
// where they end now, and finds out where the letters would go. It changes nothing. A
// *RefusedError says why a run of it would not begin.
func (r *Redriver) Plan(ctx context.Context, s Selection) (*Plan, error) {
	if err := s.Edit.validate(r.cfg.MergePatch != nil); err != nil {
		return nil, fmt.Errorf("redrive: %s: %w", s.Topic, err)
	}
	t, err := r.topicsOf(s.Topic, s.Filter.Groups)
	if err != nil {
		return nil, err
	}
	toTier, err := t.isTier(s.Target)
	if err != nil {
		return nil, within(t.dlq, err)
	}
	cl, err := client.New(r.cfg.Kafka...)
	if err != nil {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	defer cl.Close()
	now := time.Now()
	p := &Plan{
		Selection: s, ID: newID(now), Created: now, topics: t, toTier: toTier, chosen: letters.Set{}, by: map[destination]int64{}, elsewhere: map[string]bool{},
		ByClass: map[string]int64{}, ByPartition: map[int32]int64{}, ByGroup: map[string]int64{}, Targets: map[string]int64{}, Skipped: map[string]int64{},
	}
	ledger := dlq.NewLedger(t.dlq, t.ledger, r.cfg.Kafka...)
	if err := ledger.Read(ctx, nil, nil); err != nil {
		return nil, fmt.Errorf("redrive: %w", p.allLacking(ctx, cl, permission.Denied("READ", "topic", t.ledger, err)))
	}
	if ledger.Missing() {
		return nil, fmt.Errorf("redrive: %s has no ledger: create the topic %s, compacted, with as many partitions", t.dlq, t.ledger)
	}
	if err := refuseUnfinished(ledger); err != nil {
		return nil, err
	}
	p.topicID = ledger.TopicID()
	fits := s.Filter
	fits.Match = func(l *dlq.Letter) bool {
		return (s.Filter.Match == nil || s.Filter.Match(l)) && p.take(l, r.cfg.MergePatch)
	}
	for l, err := range ledger.Letters(ctx, fits, dlq.Cursor{}, dlq.WithCopies) {
		if err != nil {
			return nil, fmt.Errorf("redrive: %w", p.allLacking(ctx, cl, permission.Denied("READ", "topic", t.dlq, err)))
		}
		switch l.State {
		case dlq.Duplicate:
			p.duplicates = append(p.duplicates, duplicate{letters.At(l.Record.Partition, l.Record.Offset), l.CopyOf})
		case dlq.Unknown:
			p.unknown++
		}
	}
	p.unread = p.unreadOf(ledger)
	if err := p.resolveGroups(ctx, cl); err != nil {
		return nil, err
	}
	return p, nil
}

func init() { guard.RefuseUnfinished = refuseUnfinished }

// refuseUnfinished returns a *RefusedError if a ledger, as it was read last, has an unfinished run.
func refuseUnfinished(ledger *dlq.Ledger) error {
	topic, runs := ledger.Topic(), ledger.Runs()
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		rec, err := parseRecord(runs[id])
		if err != nil {
			return within(topic, unreadable(ledger.Name(), id, err))
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
		return &RefusedError{Topic: topic, Reason: RefusedUnfinished, Run: &o, Detail: fmt.Sprintf("run %s/%s of %s %s", topic, id, rec.Owner, how)}
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

// counted is what so many letters do, in words.
func counted(n int64, do string) string {
	if n == 1 {
		return fmt.Sprintf("1 letter %ss", do)
	}
	return fmt.Sprintf("%d letters %s", n, do)
}

// resolveGroups finds out where the letters go, and whether they may.
// See DESIGN.md, "Plans and permissions".
func (p *Plan) resolveGroups(ctx context.Context, cl *kgo.Client) error {
	adm := kadm.NewClient(cl)
	t, target := p.topics, p.Selection.Target
	refuse := func(why Refusal, detail string) error {
		return &RefusedError{Topic: t.dlq, Reason: why, Detail: detail}
	}
	switch {
	case p.Letters == 0 && p.Skipped[SkippedTooOften] > 0:
		return refuse(RefusedTooOften, fmt.Sprintf("%s, and all were redriven that often before: find out why they fail again, "+
			"raise the limit, or discard them", counted(p.Skipped[SkippedTooOften], "fit")))
	case p.Letters == 0 && p.Skipped[SkippedEdit] > 0:
		return refuse(RefusedEdit, fmt.Sprintf("%s, and the edit can't be applied to the value of any; the first: %v", counted(p.Skipped[SkippedEdit], "fit"), p.unfit))
	case p.Letters == 0 && p.Skipped[SkippedNoGroup] > 0:
		return refuse(RefusedNothing, fmt.Sprintf("%s, and none names its group: name a target topic", counted(p.Skipped[SkippedNoGroup], "fit")))
	case p.Letters == 0:
		return refuse(RefusedNothing, "no open letter fits")
	case p.Selection.Edit.Value != nil && p.Letters != 1:
		return refuse(RefusedMany, fmt.Sprintf("a new value is for one letter, and %d are selected", p.Letters))
	}
	groups := slices.Sorted(maps.Keys(p.ByGroup))
	var unreached error
	if p.toTier {
		unreached = p.resolveTiers(ctx, adm)
	}
	rights := p.checkRights(ctx, cl)
	without, unasked := idle(ctx, adm, slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return !p.follows(g) }))
	if err := cmp.Or(permission.Lacking(rights, unreached, unasked), unreached, rights, unasked); err != nil { // rights first, and all at once
		return within(t.dlq, err)
	}
	if p.toTier {
		p.SeenBy = groups
	} else {
		p.Targets[target.Topic] = p.Letters
		if err := t.checkNamed(ctx, adm, target, p); err != nil {
			return within(t.dlq, err)
		}
		if err := p.checkNaming(ctx, adm, groups); err != nil {
			return within(t.dlq, err)
		}
		if len(p.SeenBy) > 1 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%d groups read %s and will all get the records again: %s", len(p.SeenBy), target.Topic, strings.Join(p.SeenBy, ", ")))
		}
	}
	if len(without) > 0 {
		what := fmt.Sprintf("no consumer would run the records: %s without members", strings.Join(without, ", "))
		if !target.Wait {
			return refuse(RefusedNoMembers, what+"; start the consumer, or let the run wait for it")
		}
		p.Warnings = append(p.Warnings, what+"; the run waits for them")
	}
	if p.unread.letters > 0 {
		p.Warnings = append(p.Warnings, p.unread.warning(t.ledger))
	}
	if p.unknown > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d letters were redriven before, with an unknown outcome: they may be processed twice", p.unknown))
	}
	if n := p.Skipped[SkippedTooOften]; n > 0 {
		p.Warnings = append(p.Warnings, counted(n, "stay")+": redriven too often")
	}
	if n := p.Skipped[SkippedEdit]; n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: the edit can't be applied to the value; the first: %v", counted(n, "stay"), p.unfit))
	}
	if n := p.Skipped[SkippedNoGroup]; n > 0 {
		p.Warnings = append(p.Warnings, counted(n, "stay")+": without a group; name a target topic for them")
	}
	if n, why := p.unfollowed(); n == p.Letters {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the outcomes of the letters will not be known, and there is no canary: %s; once sent they count as resolved", why))
	} else if n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the outcomes of %d of the letters will not be known: %s; once sent they count as resolved", n, why))
	}
	return nil
}

func (p *Plan) resolveTiers(ctx context.Context, adm *kadm.Client) error {
	wanted := slices.SortedFunc(maps.Keys(p.by), func(a, b destination) int { return strings.Compare(a.String(), b.String()) })
	tiers, err := p.topics.tiersOf(ctx, adm, wanted, p.Selection.Target.Topic)
	if err != nil {
		return err
	}
	p.tiers = tiers
	var lacking []string
	for _, d := range wanted {
		if tier, ok := tiers[d.String()]; ok {
			p.Targets[tier] += p.by[d]
		} else {
			lacking = append(lacking, fmt.Sprintf("%s on partition %d", d.group, d.partition))
		}
	}
	if named := p.Selection.Target.Topic; len(lacking) > 0 && named != "" {
		return &RefusedError{Topic: p.topics.dlq, Reason: RefusedNoTier, Detail: fmt.Sprintf(
			"%s has no committed offset of group %s, so it would not be read: leave the target out, or name another one", named, strings.Join(lacking, ", "))}
	} else if len(lacking) > 0 {
		return &RefusedError{Topic: p.topics.dlq, Reason: RefusedNoTier, Detail: fmt.Sprintf(
			"no retry topic of %s has a committed offset of group %s that this user may see: have READ and WRITE on its retry topics granted if they are hidden, "+
				"start its consumer once if there are none, or name a target topic", p.topics.source, strings.Join(lacking, ", "))}
	}
	return nil
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

// ledgerFor reads the ledger for a plan that is to be run. It refuses the plan where another run is
// unfinished, this one was begun before, or its letters are gone.
func (r *Redriver) ledgerFor(ctx context.Context, p *Plan, see func(*dlq.LedgerRecord)) (*dlq.Ledger, error) {
	t := p.topics
	ledger := dlq.NewLedger(t.dlq, t.ledger, r.cfg.Kafka...)
	if err := ledger.Read(ctx, nil, see); err != nil {
		return nil, permission.Denied("READ", "topic", t.ledger, err)
	}
	if err := refuseUnfinished(ledger); err != nil {
		return nil, err
	}
	refuse := func(detail string) error { return &RefusedError{Topic: t.dlq, Reason: RefusedNothing, Detail: detail} }
	if _, begun := ledger.Runs()[p.ID]; begun { // a run's id is one run's
		return nil, refuse(fmt.Sprintf("the plan was run already, as %s/%s: plan again", t.dlq, p.ID))
	}
	if isOther(p.topicID, ledger.TopicID()) {
		return nil, refuse("the dead-letter topic was recreated since the plan was made, and the letters of the plan are gone: plan again")
	}
	return ledger, nil
}
