package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
)

// unreadIn returns a warning about the letters whose last entry cannot be read; empty if there are
// none. They count as open, although they may have been redriven.
func (p *Plan) unreadIn(ledger *dlq.Ledger) string {
	if n, _ := ledger.Broken(); n == 0 {
		return ""
	}
	var names []string
	unread := 0
	for at := range p.chosen.All() {
		if !ledger.Unreadable(at.Partition, at.Offset) {
			continue
		}
		if unread++; len(names) < maxNamed {
			names = append(names, at.In(p.topics.dlq).String())
		}
	}
	named := strings.Join(names, ", ")
	switch more := unread - len(names); {
	case unread == 0:
		return ""
	case more > 0:
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the entries of %d of the letters in %s can't be read, so these letters may be redriven a second time: %s; find out their outcomes first, or exclude them",
		unread, ledger.Name(), named)
}

// warnOfLanes warns of letters whose lanes no member of their group has: no consumer would run
// their copies.
func (p *Plan) warnOfLanes(lanes []destination) {
	var names []string
	letters := int64(0)
	for _, d := range lanes {
		if letters += p.by[d]; len(names) < maxNamed {
			names = append(names, fmt.Sprintf("%s/%d of group %s", p.topics.source, d.partition, d.group))
		}
	}
	named := strings.Join(names, ", ")
	if more := len(lanes) - len(names); more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	if letters > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("no consumer would run %d of the records: no member has the partitions %s; "+
			"a consumer has to read them again, or name another target topic", letters, named))
	}
}

// warnOfLetters warns of letters that stay, and of those with doubtful outcomes.
func (p *Plan) warnOfLetters() {
	if p.unread != "" {
		p.Warnings = append(p.Warnings, p.unread)
	}
	if p.unknown > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d letters were redriven before, with an unknown outcome: they may be processed twice", p.unknown))
	}
	if n := p.Skipped[SkippedTooOften]; n > 0 {
		p.Warnings = append(p.Warnings, counted(n, "stay")+": they reached the limit of redrives")
	}
	if n := p.Skipped[SkippedEdit]; n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: the edit can't be applied to the value; the first error: %v", counted(n, "stay"), p.unfit))
	}
	if n := p.Skipped[SkippedNoPartition]; n > 0 {
		p.Warnings = append(p.Warnings, counted(n, "stay")+": "+p.withoutPartition())
	}
	if n := p.Skipped[SkippedNoTier]; n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: no retry topic that this user may see has a committed offset of their groups for their partitions, as of %s; "+
			"start their consumers once, or name a target topic", counted(n, "stay"), p.first[SkippedNoTier]))
	}
	if n := p.Skipped[SkippedDamaged]; n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: with damaged headers, as %s; name a target topic for them, or discard them", counted(n, "stay"), p.first[SkippedDamaged]))
	}
	if n := p.Skipped[SkippedNoGroup]; n > 0 {
		p.Warnings = append(p.Warnings, counted(n, "stay")+": without a group; name a target topic for them")
	}
	if n := p.Skipped[SkippedOtherSource]; n > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: of another source topic than %s; name a target topic for them", counted(n, "stay"), p.topics.source))
	}
	switch n, why := p.unfollowed(); {
	case n == 0:
	case p.Selection.Target.Topic != p.topics.source:
		p.Warnings = append(p.Warnings, fmt.Sprintf("the outcomes of the letters will not be known, and there is no canary: %s; once sent they count as resolved", why))
	default:
		p.Warnings = append(p.Warnings, fmt.Sprintf("the outcomes of %d of the letters will not be known: %s; once sent they count as resolved, unless they are dead letters again while the run goes on",
			n, why))
	}
}

// withoutPartition returns a warning of letters whose partition their target does not have. Adding
// partitions brings their lanes back.
func (p *Plan) withoutPartition() string {
	topic, other := p.topics.source, "name a target topic that has enough"
	if !p.toTier {
		topic, other = p.Selection.Target.Topic, "choose another target"
	}
	has := fmt.Sprintf("%s has no partition beyond %d", topic, p.partitions-1)
	if p.partitions == 0 {
		has = topic + " does not exist"
	}
	return fmt.Sprintf("%s, and %s needs one; add partitions to it, %s, or discard them", has, p.first[SkippedNoPartition], other)
}

// counted returns "1 letter fits" or "3 letters fit".
func counted(n int64, do string) string {
	if n == 1 {
		return fmt.Sprintf("1 letter %ss", do)
	}
	return fmt.Sprintf("%d letters %s", n, do)
}

// watches sets Watched: by group, the shortest delay first.
func (p *Plan) watches(topics []string) {
	p.Watched = nil
	for _, group := range slices.Sorted(maps.Keys(p.ByGroup)) {
		for _, tier := range p.topics.naming.TiersAmong(topics, p.topics.source, group) {
			if !slices.Contains(p.Watched, tier.Topic) {
				p.Watched = append(p.Watched, tier.Topic)
			}
		}
	}
}

// absentees returns the groups of the plan that have no members. It also returns the lanes of its
// letters that no member of a group has.
func (p *Plan) absentees(ctx context.Context, adm *kadm.Client) (groups []string, lanes []destination, err error) {
	var errs []error
	for _, g := range p.groups() {
		if !p.follows(g) {
			continue
		}
		ids, assigned, err := assignments(ctx, adm, g)
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(ids) == 0:
			groups = append(groups, g)
		case assigned != nil:
			for d := range p.by {
				if d.group == g && !assigned.Lookup(p.topics.source, d.partition) {
					lanes = append(lanes, d)
				}
			}
		}
	}
	slices.SortFunc(lanes, func(a, b destination) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.partition, b.partition))
	})
	return groups, lanes, errors.Join(errs...)
}
