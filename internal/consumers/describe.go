package consumers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// described is a group as its coordinator describes it.
type described struct {
	state   string
	members []Member // with all of their partitions
	err     error
}

// describe describes groups: one request to each coordinator, and another one for those that use
// the protocol of KIP-848. kinds are the types of the groups as brokers list them, as far as they
// do. It does without kadm, which drops all groups of a coordinator for one that may not be seen.
func describe(ctx context.Context, cl *kgo.Client, groups []string, kinds map[string]string) map[string]described {
	all := map[string]described{}
	var classic, next []string
	for _, g := range groups {
		if kinds[g] == "consumer" {
			next = append(next, g)
		} else {
			classic = append(classic, g)
		}
	}
	describeClassic(ctx, cl, classic, all)
	for _, g := range classic {
		// what brokers say of a group of the other protocol
		if d := all[g]; errors.Is(d.err, kerr.GroupIDNotFound) || d.err == nil && d.state == "Dead" {
			next = append(next, g)
		}
	}
	describeNext(ctx, cl, next, all)
	return all
}

func describeClassic(ctx context.Context, cl *kgo.Client, groups []string, all map[string]described) {
	if len(groups) == 0 {
		return
	}
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = groups
	for _, shard := range cl.RequestSharded(ctx, req) {
		if shard.Err != nil {
			for _, g := range shard.Req.(*kmsg.DescribeGroupsRequest).Groups {
				all[g] = described{err: fmt.Errorf("describe group %q: %w", g, shard.Err)}
			}
			continue
		}
		for _, g := range shard.Resp.(*kmsg.DescribeGroupsResponse).Groups {
			d := described{state: g.State}
			if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
				d = described{err: fmt.Errorf("describe group %q: %w", g.Group, err)}
			}
			for _, m := range g.Members {
				to := map[string][]int32{}
				var has kmsg.ConsumerMemberAssignment
				if g.ProtocolType == "consumer" && has.ReadFrom(m.MemberAssignment) == nil {
					for _, t := range has.Topics {
						to[t.Topic] = append(to[t.Topic], t.Partitions...)
					}
				}
				d.add(Member{ID: m.MemberID, Client: m.ClientID, Host: m.ClientHost, Partitions: to}, m.InstanceID)
			}
			all[g.Group] = d
		}
	}
}

// describeNext asks by the protocol of KIP-848. Where a broker does not know the group or the
// protocol, what the classic one said stands.
func describeNext(ctx context.Context, cl *kgo.Client, groups []string, all map[string]described) {
	if len(groups) == 0 {
		return
	}
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = groups
	for _, shard := range cl.RequestSharded(ctx, req) {
		if shard.Err != nil {
			for _, g := range shard.Req.(*kmsg.ConsumerGroupDescribeRequest).Groups {
				if _, classic := all[g]; !classic {
					all[g] = described{err: fmt.Errorf("describe group %q: %w", g, shard.Err)}
				}
			}
			continue
		}
		resp := shard.Resp.(*kmsg.ConsumerGroupDescribeResponse)
		names := namesOf(ctx, cl, resp)
		for _, g := range resp.Groups {
			d := described{state: g.State}
			if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
				if _, classic := all[g.Group]; classic && errors.Is(err, kerr.GroupIDNotFound) {
					continue
				}
				d = described{err: fmt.Errorf("describe group %q: %w", g.Group, err)}
			}
			for _, m := range g.Members {
				to := map[string][]int32{}
				for _, t := range m.Assignment.TopicPartitions {
					name := cmp.Or(t.Topic, names[t.TopicID])
					to[name] = append(to[name], t.Partitions...)
				}
				d.add(Member{ID: m.MemberID, Client: m.ClientID, Host: m.ClientHost, Partitions: to}, m.InstanceID)
			}
			all[g.Group] = d
		}
	}
}

// namesOf asks for the names of assigned topics that a broker describes by their ids alone.
func namesOf(ctx context.Context, cl *kgo.Client, resp *kmsg.ConsumerGroupDescribeResponse) map[[16]byte]string {
	names := map[[16]byte]string{}
	req := kmsg.NewPtrMetadataRequest()
	for _, g := range resp.Groups {
		for _, m := range g.Members {
			for _, t := range m.Assignment.TopicPartitions {
				if _, asked := names[t.TopicID]; t.Topic == "" && !asked {
					names[t.TopicID] = ""
					req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{TopicID: t.TopicID})
				}
			}
		}
	}
	if len(req.Topics) == 0 {
		return nil
	}
	if known, err := req.RequestWith(ctx, cl); err == nil {
		for _, t := range known.Topics {
			if t.Topic != nil {
				names[t.TopicID] = *t.Topic
			}
		}
	}
	return names
}

func (d *described) add(m Member, instance *string) {
	if instance != nil {
		m.Instance = *instance
	}
	for _, partitions := range m.Partitions {
		slices.Sort(partitions)
	}
	d.members = append(d.members, m)
	slices.SortFunc(d.members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID))
	})
}
