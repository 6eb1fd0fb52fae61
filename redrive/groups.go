package redrive

// Finds whether members of a group read a topic.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// members returns the ids of a group's members. It asks by the protocol of KIP-848 first. It asks
// by the classic protocol only if the group or the broker does not know the other one. A group of
// the other protocol looks as if it had no members.
func members(ctx context.Context, adm *kadm.Client, group string) (ids []string, err error) {
	ids, _, err = assignments(ctx, adm, group)
	return ids, err
}

// assignments is like members. It also returns the partitions that the members have; nil if that
// cannot be said, as during a rebalance.
func assignments(ctx context.Context, adm *kadm.Client, group string) (ids []string, assigned kadm.TopicsSet, err error) {
	described, err := adm.DescribeConsumerGroups(ctx, group)
	next, found := described[group]
	err = cmp.Or(err, next.Err)
	for _, m := range next.Members {
		ids = append(ids, m.MemberID)
	}
	if next.State == stable {
		assigned = next.AssignedPartitions()
	}
	if err == nil && !found || errors.Is(err, kerr.GroupIDNotFound) || permission.IsUnsupported(err) {
		var described kadm.DescribedGroups
		described, err = adm.DescribeGroups(ctx, group)
		classic := described[group]
		if !errors.Is(classic.Err, kerr.GroupIDNotFound) {
			err = cmp.Or(err, classic.Err)
		}
		for _, m := range classic.Members {
			ids = append(ids, m.MemberID)
		}
		if classic.State == stable {
			assigned = classic.AssignedPartitions()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("describe group %q: %w", group, permission.Denied("DESCRIBE", "group", group, err))
	}
	return ids, assigned, nil
}

// stable is the state of a group whose members have their partitions.
const stable = "Stable"

// fetchOffsets returns a group's committed offsets; none if there is no such group. Brokers since
// Kafka 4.2 answer with the topics' ids, and kgo asks for the names. A broker that has not learned
// of a topic yet is asked again. If none says its name, fetchOffsets returns an error, because the
// group would look as if it had committed nothing there.
func fetchOffsets(ctx context.Context, adm *kadm.Client, group string) (kadm.OffsetResponses, error) {
	var unnamed error
	for range 3 {
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return nil, fmt.Errorf("fetch offsets of group %q: %w", group, permission.Denied("DESCRIBE", "group", group, err))
		}
		unnamed = nil
		for _, o := range offsets[""] {
			if o.Err != nil {
				unnamed = fmt.Errorf("fetch offsets of group %q: no broker says the name of topic %v, which was just created or deleted: try again: %w", group, o.TopicID, o.Err)
			}
		}
		if unnamed == nil {
			return offsets, nil
		}
		pause(ctx, 200*time.Millisecond)
	}
	return nil, unnamed
}

// readers returns the groups with a committed offset on a topic, without groups that the user may
// not describe.
func readers(ctx context.Context, adm *kadm.Client, topic string) ([]string, error) {
	groups, err := adm.ListGroups(ctx)
	if err != nil {
		if _, denied := errors.AsType[*kadm.AuthError](err); denied {
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
