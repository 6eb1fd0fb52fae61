package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// resolveGroups finds the targets of the letters, and refuses the plan if they may not go there.
// See DESIGN.md, "Plans and permissions".
func (p *Plan) resolveGroups(ctx context.Context, cl *kgo.Client) error {
	adm := kadm.NewClient(cl)
	t, target := p.topics, p.Selection.Target
	if err := p.refuseSelection(); err != nil {
		return err
	}
	var unreached error
	if p.toTier {
		unreached = p.resolveTiers()
	}
	denied := p.checkPermissions(ctx, cl)
	without, unread, unasked := p.absentees(ctx, adm)
	// missing permissions first, in one error
	if err := cmp.Or(permission.Lacking(denied, unreached, unasked), unreached, denied, unasked); err != nil {
		return within(t.dlq, err)
	}
	if p.toTier {
		p.SeenBy = p.groups()
	} else {
		p.Targets[target.Topic] = p.Letters
		if err := p.checkTarget(ctx, adm); err != nil {
			return within(t.dlq, err)
		}
		if err := p.checkNaming(ctx, adm); err != nil {
			return within(t.dlq, err)
		}
		if len(p.SeenBy) > 1 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%d groups read %s, and all of them get the records again: %s", len(p.SeenBy), target.Topic, strings.Join(p.SeenBy, ", ")))
		}
	}
	if len(without) > 0 {
		p.absent = without
		then := "; a run is refused until they are there, unless it waits"
		if target.Wait {
			then = "; the run waits for them"
		}
		p.Warnings = append(p.Warnings, withoutMembers(without)+then)
	}
	p.warnOfLanes(unread)
	p.warnOfLetters()
	return nil
}

// findHomes finds which lanes letters may have: those of the source for retry topics, or else those
// of the target.
func (p *Plan) findHomes(ctx context.Context, adm *kadm.Client) error {
	name := p.Selection.Target.Topic
	p.home, p.homeless = &homes{ctx: ctx, topics: p.topics, adm: adm, named: name, offsets: map[string]kadm.OffsetResponses{}, found: map[destination]string{}}, map[destination]int64{}
	if p.toTier {
		name = p.topics.source
	}
	n, err := partitionsOf(ctx, adm, name)
	if p.partitions = n; n == 0 && !p.toTier {
		p.partitions = -1 // the plan is refused
	}
	return err
}

// newPlan returns a plan without letters.
func newPlan(ctx context.Context, cl *kgo.Client, s Selection, t *topics, toTier bool) (*Plan, error) {
	now := time.Now()
	p := &Plan{
		Selection: s, ID: newID(now), Created: now, topics: t, toTier: toTier, chosen: letters.Set{}, by: map[destination]int64{}, elsewhere: map[string]bool{},
		ByClass: map[string]int64{}, ByPartition: map[int32]int64{}, ByGroup: map[string]int64{}, Targets: map[string]int64{}, Skipped: map[string]int64{},
		first: map[string]string{}, epochs: map[int32]int32{},
	}
	err := p.findHomes(ctx, kadm.NewClient(cl))
	return p, err
}

// again returns a copy of the plan whose targets are to be found again, without the letters whose
// partition is gone since. It is a copy, since the caller owns the plan, and other goroutines may
// read it.
func (p *Plan) again(ctx context.Context, cl *kgo.Client) (*Plan, error) {
	now := *p
	now.Targets, now.Warnings, now.tiers, now.absent = map[string]int64{}, nil, nil, nil
	now.by, now.ByGroup, now.Skipped, now.first = maps.Clone(p.by), maps.Clone(p.ByGroup), map[string]int64{}, map[string]string{}
	maps.Copy(now.Skipped, p.Skipped)
	maps.Copy(now.first, p.first)
	if err := now.findHomes(ctx, kadm.NewClient(cl)); err != nil {
		return nil, err
	}
	for d := range now.by {
		if now.partitions >= 0 && int(d.partition) >= now.partitions {
			now.leaveOut(d, SkippedNoPartition)
		}
	}
	return &now, nil
}

// withoutMembers returns a warning of groups that have no members.
func withoutMembers(groups []string) string {
	return fmt.Sprintf("no consumer would run the records: %s without members", strings.Join(groups, ", "))
}

// refuseSelection refuses a plan that has no letters, or more than its edit is for.
func (p *Plan) refuseSelection() error {
	t := p.topics
	switch {
	case p.Letters == 0 && p.Skipped[SkippedTooOften] > 0:
		return t.refuse(RefusedTooOften, "%s, and all reached the limit of redrives: find out why they fail again, "+
			"raise the limit, or discard them", counted(p.Skipped[SkippedTooOften], "fit"))
	case p.Letters == 0 && p.Skipped[SkippedEdit] > 0:
		return t.refuse(RefusedEdit, "%s, and the edit can't be applied to any value: change the edit; the first error: %v", counted(p.Skipped[SkippedEdit], "fit"), p.unfit)
	case p.Letters == 0 && p.Skipped[SkippedNoPartition] > 0:
		return t.refuse(RefusedPartitions, "%s, and %s", counted(p.Skipped[SkippedNoPartition], "fit"), p.withoutPartition())
	case p.Letters == 0 && p.Skipped[SkippedNoTier] > 0:
		return p.refuseHomeless()
	case p.Letters == 0 && p.Skipped[SkippedNoGroup]+p.Skipped[SkippedOtherSource]+p.Skipped[SkippedDamaged] > 0:
		return p.refuseWithoutHome()
	case p.Letters == 0 && p.resolved != "":
		return t.refuse(RefusedNothing, "no open letter fits: %s", p.resolved)
	case p.Letters == 0:
		return t.refuse(RefusedNothing, "no open letter fits")
	case p.Selection.Edit.Value != nil && p.Letters != 1:
		return t.refuse(RefusedMany, "a new value is for one letter, and %d are selected: narrow the filter", p.Letters)
	}
	return nil
}

// refuseWithoutHome refuses a plan of which no letter has a retry topic of the source to go to.
func (p *Plan) refuseWithoutHome() error {
	nameless, damaged, other := p.Skipped[SkippedNoGroup], p.Skipped[SkippedDamaged], p.Skipped[SkippedOtherSource]
	all := counted(nameless+damaged+other, "fit")
	switch {
	case damaged+other == 0:
		return p.topics.refuse(RefusedNothing, "%s, and none names its group: name a target topic", all)
	case nameless+other == 0:
		return p.topics.refuse(RefusedNothing, "%s, and the headers of all are damaged, as of %s: name a target topic", all, p.first[SkippedDamaged])
	case other == 0:
		return p.topics.refuse(RefusedNothing, "%s: %d without a group, and %d with damaged headers, as %s: name a target topic", all, nameless, damaged, p.first[SkippedDamaged])
	}
	kinds := ", "
	switch {
	case damaged > 0:
		kinds = fmt.Sprintf(": %d without a group, %d with damaged headers, and %d ", nameless, damaged, other)
	case nameless > 0:
		kinds = fmt.Sprintf(": %d without a group, and %d ", nameless, other)
	}
	return p.topics.refuse(RefusedNothing, "%s%sof another source topic than %s: export them and import them into its dead-letter topic, or name a target topic",
		all, kinds, p.topics.source)
}

// resolveTiers finds the retry topics of the letters. Letters for which there is none stay, unless
// there is none for any letter: then the plan is refused.
func (p *Plan) resolveTiers() error {
	p.tiers = map[string]string{}
	for d, n := range p.by {
		if tier := p.home.of(d); tier != "" {
			p.tiers[d.String()] = tier
			p.Targets[tier] += n
		}
	}
	if err := errors.Join(p.home.errs...); err != nil {
		return err
	}
	for d, n := range p.by {
		if p.tiers[d.String()] == "" {
			p.homeless[d] += n
			p.leaveOut(d, SkippedNoTier)
		}
	}
	if len(p.tiers) == 0 {
		return p.refuseHomeless()
	}
	return nil
}

// refuseHomeless refuses a plan of which no letter has a retry topic.
func (p *Plan) refuseHomeless() error {
	var lacking, groups []string
	for _, d := range slices.SortedFunc(maps.Keys(p.homeless), func(a, b destination) int { return strings.Compare(a.String(), b.String()) }) {
		lacking = append(lacking, fmt.Sprintf("%s on partition %d", d.group, d.partition))
		groups = append(groups, d.group)
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	if more := len(lacking) - maxNamed; more > 0 {
		lacking = append(lacking[:maxNamed], fmt.Sprintf("%d more", more))
	}
	if named := p.Selection.Target.Topic; named != "" {
		return p.topics.refuseGroups(groups, RefusedNoTier,
			"%s has no committed offset of group %s, so the group would not read it: omit the target, or name another one", named, strings.Join(lacking, ", "))
	}
	return p.topics.refuseGroups(groups, RefusedNoTier,
		"no retry topic of %s that this user may see has a committed offset of group %s: grant READ and WRITE on its retry topics if they are hidden, "+
			"start its consumer once if there are none, or name a target topic", p.topics.source, strings.Join(lacking, ", "))
}

// checkNaming refuses a redrive to the source if new failures of its letters would go unnoticed.
func (p *Plan) checkNaming(ctx context.Context, adm *kadm.Client) error {
	target := p.Selection.Target
	if target.Topic != p.topics.source {
		return nil
	}
	for _, g := range p.groups() { // letters without a group are not followed
		err := p.topics.misnamed(ctx, adm, g)
		refused, suspect := errors.AsType[*RefusedError](err)
		switch {
		case suspect && target.Force:
			p.Warnings = append(p.Warnings, refused.Detail)
		case suspect:
			refused.Detail += "; give the naming of the retry topics, or force the redrive"
			return refused
		case err != nil:
			return err
		}
	}
	return nil
}

// checkTarget checks whether letters may go to the named target.
func (p *Plan) checkTarget(ctx context.Context, adm *kadm.Client) error {
	t, target := p.topics, p.Selection.Target
	described, err := adm.ListTopics(ctx, target.Topic)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	d := described[target.Topic]
	switch {
	case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return t.refuse(RefusedTarget, "the topic %s does not exist: create it, or choose another one", target.Topic)
	case d.Err != nil:
		return fmt.Errorf("describe topic %q: %w", target.Topic, permission.Denied("DESCRIBE", "topic", target.Topic, d.Err))
	}
	configs, err := adm.DescribeTopicConfigs(ctx, target.Topic)
	if err != nil {
		return fmt.Errorf("describe the configuration of topic %q: %w", target.Topic, err)
	}
	c, err := configs.On(target.Topic, nil)
	if err = cmp.Or(err, c.Err); err != nil {
		return fmt.Errorf("describe the configuration of topic %q: %w", target.Topic, permission.Denied("DESCRIBE_CONFIGS", "topic", target.Topic, err))
	}
	values := map[string]string{}
	for _, v := range c.Configs {
		values[v.Key] = v.MaybeValue()
	}
	if strings.Contains(values["cleanup.policy"], "compact") {
		what := target.Topic + " is compacted: an old value would become the latest of its key"
		if !target.Force {
			return t.refuse(RefusedCompacted, "%s; redrive to the group's retry topic, or force it", what)
		}
		p.Warnings = append(p.Warnings, what)
	}
	if target.KeepTimestamp {
		if ms, limited := retention(values); limited && p.oldest.Before(p.Created.Add(-ms)) {
			return t.refuse(RefusedRetention,
				"%s keeps records for %v, and the oldest selected record is of %s: with its timestamp it would be deleted at once; do not keep timestamps, or select younger letters",
				target.Topic, ms, p.oldest.UTC().Format("2006-01-02T15:04:05Z"))
		}
	}
	seenBy, err := readers(ctx, adm, target.Topic)
	if err != nil {
		return err
	}
	p.SeenBy = seenBy
	return nil
}
