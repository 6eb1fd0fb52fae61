package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/retrytopics"
)

// destination is where letters of a group and a partition go.
type destination struct {
	group     string
	partition int32
}

func (d destination) String() string { return fmt.Sprintf("%s/%d", d.group, d.partition) }

// isTier reports whether letters go to retry topics, where they are records that have yet to fail: with no target named, or with one
// that is a retry topic of the source. Other siblings are no targets.
func (t *topics) isTier(target Target) (bool, error) {
	name, sibling := t.naming.Parse(target.Topic)
	refuse := func(format string, args ...any) error {
		return &RefusedError{Topic: t.dlq, Reason: RefusedTarget, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case target.Topic == "":
		return true, nil
	case !sibling:
		return false, nil
	case name.Kind != retrytopics.KindRetry:
		return false, refuse("%s is the %s topic of %s by its name: choose another target", target.Topic, name.Kind, name.Source)
	case name.Source != t.source:
		return false, refuse("%s is a retry topic of %s, where records of %s can't run: choose another target", target.Topic, name.Source, t.source)
	case target.KeepTimestamp:
		return false, refuse("%s is a retry topic, whose records keep their timestamp in a header: leave KeepTimestamp out", target.Topic)
	}
	return true, nil
}

// tiersOf returns the first retry topic of each destination: the shortest tier on which the group has a committed offset for that
// partition, which is what it reads; or the one that is named, if it has one there. Those without one are missing.
func (t *topics) tiersOf(ctx context.Context, adm *kadm.Client, wanted []destination, named string) (map[string]string, error) {
	tiers := map[string]string{}
	offsets := map[string]kadm.OffsetResponses{}
	var errs []error
	for _, d := range wanted {
		committed, ok := offsets[d.group]
		if !ok {
			var err error
			if committed, err = adm.FetchOffsets(ctx, d.group); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
				errs = append(errs, fmt.Errorf("fetch offsets of group %q: %w", d.group, permission.Denied("DESCRIBE", "group", d.group, err)))
			}
			offsets[d.group] = committed
		}
		var names []string
		for topic := range committed {
			if o, ok := committed.Lookup(topic, d.partition); ok && o.At >= 0 && (named == "" || topic == named) {
				names = append(names, topic)
			}
		}
		if among := t.naming.TiersAmong(names, t.source, d.group); len(among) > 0 {
			tiers[d.String()] = among[0].Topic
		}
	}
	return tiers, errors.Join(errs...)
}

// members are the ids of a group's members. It asks in the protocol of KIP-848 first, and in the classic one only of a group that the
// first does not know, or a broker: there a group of the other kind is none at all, and would have no members.
func members(ctx context.Context, adm *kadm.Client, group string) (ids []string, err error) {
	next, err := adm.DescribeConsumerGroups(ctx, group)
	if err == nil {
		err = next[group].Err
	}
	if _, ok := next[group]; ok && err == nil {
		for _, m := range next[group].Members {
			ids = append(ids, m.MemberID)
		}
		return ids, nil
	}
	if err != nil && !unknownByKIP848(err) {
		return nil, fmt.Errorf("describe group %q: %w", group, permission.Denied("DESCRIBE", "group", group, err))
	}
	classic, err := adm.DescribeGroups(ctx, group)
	if err == nil && !errors.Is(classic[group].Err, kerr.GroupIDNotFound) {
		err = classic[group].Err
	}
	if err != nil {
		return nil, fmt.Errorf("describe group %q: %w", group, permission.Denied("DESCRIBE", "group", group, err))
	}
	for _, m := range classic[group].Members {
		ids = append(ids, m.MemberID)
	}
	return ids, nil
}

// unknownByKIP848 reports whether an error says that a group is of the classic protocol, or that a broker knows no other.
func unknownByKIP848(err error) bool {
	return errors.Is(err, kerr.GroupIDNotFound) || permission.IsUnsupported(err)
}

// idle lists those of the groups that have no members.
func idle(ctx context.Context, adm *kadm.Client, groups []string) (without []string, err error) {
	var errs []error
	for _, g := range groups {
		ids, err := members(ctx, adm, g)
		if err != nil {
			errs = append(errs, err)
		} else if len(ids) == 0 {
			without = append(without, g)
		}
	}
	return without, errors.Join(errs...)
}

// readers lists the groups that have a committed offset on a topic, of those that may be described.
func readers(ctx context.Context, adm *kadm.Client, topic string) ([]string, error) {
	groups, err := adm.ListGroups(ctx)
	if err != nil {
		var auth *kadm.AuthError
		if errors.As(err, &auth) {
			return nil, nil
		}
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var found []string
	for name, r := range adm.FetchManyOffsets(ctx, groups.Groups()...) {
		for _, o := range r.Fetched[topic] {
			if r.Err == nil && o.Err == nil && o.At >= 0 {
				found = append(found, name)
				break
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// checkNamed looks whether letters may go to a topic that was named.
func (t *topics) checkNamed(ctx context.Context, adm *kadm.Client, target Target, p *Plan) error {
	described, err := adm.ListTopics(ctx, target.Topic)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	d := described[target.Topic]
	switch {
	case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return &RefusedError{Topic: t.dlq, Reason: RefusedTarget, Detail: fmt.Sprintf("the topic %s does not exist: create it, or choose another one", target.Topic)}
	case d.Err != nil:
		return fmt.Errorf("describe topic %q: %w", target.Topic, permission.Denied("DESCRIBE", "topic", target.Topic, d.Err))
	}
	if most := p.mostPartition(); int(most) >= len(d.Partitions) {
		return &RefusedError{Topic: t.dlq, Reason: RefusedPartitions, Detail: fmt.Sprintf(
			"%s has %d partitions, and there are letters of partition %d: grow it first, or choose another target", target.Topic, len(d.Partitions), most)}
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
			return &RefusedError{Topic: t.dlq, Reason: RefusedCompacted, Detail: what + "; bring the letters back to the group's retry topic, or force it"}
		}
		p.Warnings = append(p.Warnings, what)
	}
	if target.KeepTimestamp {
		if ms, limited := retention(values); limited && p.oldest.Before(p.Created.Add(-ms)) {
			return &RefusedError{Topic: t.dlq, Reason: RefusedRetention, Detail: fmt.Sprintf(
				"%s keeps records for %v, and the oldest selected is of %s: with its timestamp it would be deleted at once; leave the timestamps out, or select younger ones",
				target.Topic, ms, p.oldest.UTC().Format("2006-01-02T15:04:05Z"))}
		}
	}
	seenBy, err := readers(ctx, adm, target.Topic)
	if err != nil {
		return err
	}
	p.SeenBy = seenBy
	return nil
}
