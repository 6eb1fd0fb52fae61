package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// outcomes finds the outcomes of letters, and relies on the order of its readings. It reads the
// groups' stable committed offsets first, and then the ends of the watched topics. Then the watch
// reads up to these ends. A group commits past a record only after the record succeeded or the copy
// of its failure is written. So if the offset is past a letter, the watch has read the copy of its
// failure, if there is one. See DESIGN.md, "Outcomes".
type outcomes struct {
	*ownedRun
	watch  *watch
	last   map[string]groupOffsets
	absent []time.Time // the last polls in a row that did not find the dead-letter topic
	moved  time.Time   // when a letter had an outcome, or none waited for one
}

// newOutcomes keeps a copy of the run, because the engine changes the run during a poll.
func newOutcomes(run *ownedRun, w *watch) *outcomes {
	return &outcomes{ownedRun: run.snapshot(), watch: w, last: map[string]groupOffsets{}, moved: time.Now()}
}

// poll finds the letters that have an outcome now.
func (o *outcomes) poll(ctx context.Context) (result pollResult) {
	quiet := time.Now().Add(-o.rec.Pace.Window)
	result.verdicts, result.err = o.verdicts(ctx)
	if result.err != nil {
		quiet = time.Time{} // the watch may not have read all failures
	}
	if result.judged = o.watch.flights.FirstOutcomes(quiet); result.err != nil {
		return result
	}
	for _, g := range o.rec.Groups {
		// on an unfollowed target, members do not matter
		if len(o.last[g].members) == 0 && o.follows(g) {
			result.idle = append(result.idle, g)
		}
	}
	if !o.rec.toTier() {
		result.lag, result.err = o.behind(ctx, o.rec.Target.Topic)
	}
	if now := time.Now(); len(result.verdicts) > 0 || o.watch.flights.Unfinished() == 0 {
		o.moved = now
	} else if now.Sub(o.moved) >= heldAfter {
		result.held = heldBack(ctx, o.watch.adm, o.watch.flights.Fronts())
	}
	return result
}

// behind returns the groups' lag on the named target.
func (o *outcomes) behind(ctx context.Context, named string) (lag int64, err error) {
	to, err := bounds.Ends(ctx, o.watch.adm, []string{named})
	if err != nil {
		return 0, err
	}
	for _, g := range o.rec.Groups {
		n := int64(0)
		for p, end := range to[named] {
			if at, ok := o.last[g].at[named][p]; ok {
				n += max(end-at, 0)
			}
		}
		lag = max(lag, n)
	}
	return lag, nil
}

func (o *outcomes) verdicts(ctx context.Context) ([]inflight.Verdict, error) {
	// (1)
	for _, g := range o.rec.Groups {
		if err := o.fetch(ctx, g); err != nil {
			return nil, err
		}
	}
	// (2) Topics that were created meanwhile are watched from their start.
	found, err := o.topics.watched(ctx, o.watch.adm, o.rec.Groups)
	if err != nil {
		return nil, err
	}
	if err := o.sameTopic(found); err != nil {
		return nil, err
	}
	if err := o.there(ctx, found); err != nil {
		return nil, err
	}
	o.watch.checkTopics(found)
	to, err := bounds.Ends(ctx, o.watch.adm, found.Names())
	if err != nil {
		return nil, err
	}
	o.watch.adopt(to)
	targets := append(found.Names(), o.watch.flights.Topics()...)
	slices.Sort(targets)
	from, err := bounds.Starts(ctx, o.watch.adm, slices.Compact(targets))
	if err != nil {
		return nil, err
	}
	// (3)
	if err := o.watch.WaitUntil(ctx, to); err != nil {
		return nil, err
	}
	return o.watch.flights.Resolve(func(group string, at headers.Position) inflight.Progress { return o.progress(group, at, from) }), nil
}

// progress returns a group's progress, or that of all groups of the run if the letter's group is
// unknown.
func (o *outcomes) progress(group string, at headers.Position, starts bounds.Positions) inflight.Progress {
	groups := []string{group}
	if group == "" {
		groups = o.rec.Groups
	}
	worst := inflight.Past
	for _, g := range groups {
		switch o.last[g].progressOn(at, starts) {
		case inflight.Behind:
			return inflight.Behind
		case inflight.Unknown:
			worst = inflight.Unknown
		}
	}
	if worst == inflight.Past && (len(groups) == 0 || o.watch.Missed(at.Partition)) {
		return inflight.Unknown
	}
	return worst
}

// fetch reads a group's committed offsets.
func (o *outcomes) fetch(ctx context.Context, group string) error {
	ids, err := members(ctx, o.watch.adm, group)
	if err != nil {
		return err
	}
	offsets, err := fetchOffsets(kadm.RequireStable(ctx), o.watch.adm, group)
	if err != nil {
		return err
	}
	o.last[group] = o.last[group].next(ids, offsets)
	return nil
}

// there checks that a poll found the dead-letter topic. A list of all topics omits topics that the
// user may not describe, so there asks for the topic by name.
func (o *outcomes) there(ctx context.Context, found kadm.TopicDetails) error {
	name := o.topics.dlq
	if found.Has(name) {
		o.absent = nil
		return nil
	}
	named, err := o.watch.adm.ListTopics(ctx, name)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	if err := named[name].Err; !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("describe topic %q: not among all topics: %w", name, permission.Denied("DESCRIBE", "topic", name, err))
	}
	if o.absent = append(o.absent, time.Now()); isGone(o.absent) {
		return ErrTopicRecreated
	}
	return fmt.Errorf("the dead-letter topic %s does not exist", name)
}
