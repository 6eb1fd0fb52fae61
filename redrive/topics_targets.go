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

	"github.com/sidingkafka/siding/retrytopics"
)

// destination is a group and a partition; it decides the retry topic of a letter.
type destination struct {
	group     string
	partition int32
}

func (d destination) String() string { return fmt.Sprintf("%s/%d", d.group, d.partition) }

// legalName matches the names that Kafka gives topics, and two that it reserves.
var legalName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// isTier reports whether the target is a retry topic of the source, or none is named. Copies there
// are records that have yet to fail. Other siblings are refused as targets.
func (t *topics) isTier(target Target) (bool, error) {
	name, sibling := t.naming.Parse(target.Topic)
	switch {
	case target.Topic == "":
		return true, nil
	case !legalName.MatchString(target.Topic) || target.Topic == "." || target.Topic == "..":
		return false, t.refuse(RefusedTarget, "%q is not the name of a topic: Kafka allows 249 letters, digits, '.', '_' and '-', but neither \".\" nor \"..\": choose another target", target.Topic)
	case !sibling:
		return false, nil
	case name.Kind != retrytopics.KindRetry:
		return false, t.refuse(RefusedTarget, "%s is the %s topic of %s by its name: choose another target", target.Topic, name.Kind, name.Source)
	case name.Source != t.source:
		return false, t.refuse(RefusedTarget, "%s is a retry topic of %s, and cannot take records of %s: choose another target", target.Topic, name.Source, t.source)
	case target.KeepTimestamp:
		return false, t.refuse(RefusedTarget, "%s is a retry topic, whose records keep their timestamp in a header: omit KeepTimestamp", target.Topic)
	}
	return true, nil
}

// homes finds the retry topics of letters: the named one, or else the shortest tier. The group must
// have a committed offset there for the partition, because only then it reads the tier.
type homes struct {
	ctx     context.Context
	topics  *topics
	adm     *kadm.Client
	named   string
	offsets map[string]kadm.OffsetResponses // by group; nil if they could not be read
	errs    []error
	found   map[destination]string
}

// of returns the retry topic of a destination; empty if there is none, or if the group's offsets
// cannot be read. A plan asks for each letter.
func (h *homes) of(d destination) string {
	tier, ok := h.found[d]
	if !ok {
		tier = h.find(d)
		h.found[d] = tier
	}
	return tier
}

func (h *homes) find(d destination) string {
	committed, ok := h.offsets[d.group]
	if !ok {
		var err error
		if committed, err = fetchOffsets(h.ctx, h.adm, d.group); err == nil && committed == nil {
			committed = kadm.OffsetResponses{} // there is no such group
		}
		h.offsets[d.group], h.errs = committed, append(h.errs, err)
	}
	var names []string
	for topic := range committed {
		if o, ok := committed.Lookup(topic, d.partition); ok && o.At >= 0 && (h.named == "" || topic == h.named) {
			names = append(names, topic)
		}
	}
	if among := h.topics.naming.TiersAmong(names, h.topics.source, d.group); len(among) > 0 {
		return among[0].Topic
	}
	return ""
}

// lacks reports whether there is no retry topic for a destination, as far as offsets can be read.
func (h *homes) lacks(d destination) bool { return h.of(d) == "" && h.offsets[d.group] != nil }

// partitionsOf returns how many partitions a topic has: none if it does not exist, and -1 if the
// user may not describe it.
func partitionsOf(ctx context.Context, adm *kadm.Client, name string) (int, error) {
	found, err := adm.ListTopics(ctx, name)
	switch d := found[name]; {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(d.Err, kerr.TopicAuthorizationFailed):
		return -1, nil
	case err != nil:
		return -1, fmt.Errorf("list topics: %w", err)
	case d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return -1, fmt.Errorf("describe topic %q: %w", name, d.Err)
	default:
		return len(d.Partitions), nil
	}
}

// misnamed refuses a group whose letters go to the source if their new failures would go unnoticed.
// A group without retry topics has committed offsets on none. The naming is suspect if it matches
// none of the group's topics, and one of them looks like a retry topic.
func (t *topics) misnamed(ctx context.Context, adm *kadm.Client, group string) error {
	committed, err := fetchOffsets(ctx, adm, group)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(committed))
	if len(t.naming.TiersAmong(names, t.source, group)) > 0 {
		return nil
	}
	for _, name := range names {
		if _, sibling := t.naming.Parse(name); !sibling && t.likeTier(name) {
			return t.refuse(RefusedNaming,
				"group %s has committed offsets on %s, which looks like a retry topic of %s, and on no retry topic of the naming: new failures would go unnoticed",
				group, name, t.source)
		}
	}
	return nil
}

// likeTier reports whether a topic may be a retry topic of the source under some naming: its name
// has the source's name and a delay.
func (t *topics) likeTier(name string) bool {
	before, after, found := strings.Cut(name, t.source)
	return found && (likeDelay.MatchString(before) || likeDelay.MatchString(after))
}

// A letter that goes to the source and fails again goes to a retry topic. If the naming does not
// match that topic, the run does not watch it, and the letter counts as succeeded. Letters that go
// to a retry topic are safe, because the naming found that topic.

// likeDelay matches the delay in a retry topic's name.
var likeDelay = regexp.MustCompile(`[0-9](ms|s|m|h)`)
