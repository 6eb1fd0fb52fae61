package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// A letter that goes to the source and fails again goes to a retry topic. Where these are named otherwise than the naming says nobody
// looks there, and the letter counts as succeeded. Letters that go to a retry topic are safe from that: it was found by the naming.

// likeDelay is what the name of a retry topic has besides the source's.
var likeDelay = regexp.MustCompile(`[0-9](ms|s|m|h)`)

// checkNaming looks whether letters for the source are seen when they fail again.
func (p *Plan) checkNaming(ctx context.Context, adm *kadm.Client, groups []string) error {
	target := p.Selection.Target
	if target.Topic != p.topics.source {
		return nil
	}
	for _, g := range groups {
		if g == "" { // these are not followed
			continue
		}
		err := p.topics.misnamed(ctx, adm, g)
		refused, suspect := errors.AsType[*RefusedError](err)
		switch {
		case suspect && target.Force:
			p.Warnings = append(p.Warnings, refused.Detail)
		case suspect:
			refused.Detail += "; say how retry topics are named, or force it"
			return refused
		case err != nil:
			return err
		}
	}
	return nil
}

// misnamed is a refusal where letters of a group that go to the source would not be seen when they fail again. A group without retry topics has
// committed on none; what looks like one, and the naming does not know, makes the naming suspect where it finds no other.
func (t *topics) misnamed(ctx context.Context, adm *kadm.Client, group string) error {
	committed, err := adm.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("fetch offsets of group %q: %w", group, permission.Denied("DESCRIBE", "group", group, err))
	}
	names := slices.Sorted(maps.Keys(committed))
	if len(t.naming.TiersAmong(names, t.source, group)) > 0 {
		return nil
	}
	for _, name := range names {
		if _, sibling := t.naming.Parse(name); !sibling && t.likeTier(name) {
			return &RefusedError{Topic: t.dlq, Reason: RefusedNaming, Detail: fmt.Sprintf(
				"group %s has committed offsets on %s, which looks like a retry topic of %s, and on none that is named as was said: what fails again would not be seen",
				group, name, t.source)}
		}
	}
	return nil
}

// likeTier reports whether a topic may be a retry topic of the source by some naming: each has the source's name in it, and a delay.
func (t *topics) likeTier(name string) bool {
	before, after, found := strings.Cut(name, t.source)
	return found && (likeDelay.MatchString(before) || likeDelay.MatchString(after))
}
