package share

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// balancer deals out the first partition of each topic, and no others: so the members own equal
// numbers of topics.
type balancer struct{ kgo.GroupBalancer }

func newBalancer() kgo.GroupBalancer { return balancer{kgo.CooperativeStickyBalancer()} }

// ProtocolName is not that of the balancer within: both in one group would disagree.
func (b balancer) ProtocolName() string { return "siding-topics-" + b.GroupBalancer.ProtocolName() }

// MemberBalancer implements kgo.GroupBalancer.
func (b balancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	inner, topics, err := b.GroupBalancer.MemberBalancer(members)
	return memberBalancer{inner}, topics, err
}

type memberBalancer struct{ kgo.GroupMemberBalancer }

// BalanceOrError implements kgo.GroupMemberBalancerOrError. topics has the numbers of partitions.
func (b memberBalancer) BalanceOrError(topics map[string]int32) (kgo.IntoSyncAssignment, error) {
	for topic := range topics {
		topics[topic] = 1
	}
	if inner, ok := b.GroupMemberBalancer.(kgo.GroupMemberBalancerOrError); ok {
		return inner.BalanceOrError(topics)
	}
	return b.Balance(topics), nil
}
