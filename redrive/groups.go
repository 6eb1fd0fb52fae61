package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// members returns the ids of a group's members. It asks by the protocol of KIP-848 first. It asks
// by the classic protocol only if the group or the broker does not know the other one. A group of
// the other protocol looks as if it had no members.
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

// unknownByKIP848 reports whether an error means that a group uses the classic protocol, or that a
// broker knows no other.
func unknownByKIP848(err error) bool {
	return errors.Is(err, kerr.GroupIDNotFound) || permission.IsUnsupported(err)
}

// idle returns the groups without members.
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

// readers returns the groups with a committed offset on a topic, without groups that the user may
// not describe.
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
