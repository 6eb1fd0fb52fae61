package share

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// Sharing is the membership of a process. See DESIGN.md, "Servers that share topics".
type Sharing struct {
	cl *kgo.Client

	mu     sync.Mutex
	topics map[string]bool // that are shared
	owned  map[string]bool
	failed error // the last session of the group, until topics are dealt out again
}

// Join joins a group. changed is called after the topics of this process have changed; it must not
// block. opts connect to the cluster.
func Join(group string, changed func(), opts ...kgo.Opt) (*Sharing, error) {
	s := &Sharing{topics: map[string]bool{}, owned: map[string]bool{}}
	// The owner of a topic has its first partition. Nothing is fetched or committed.
	set := func(owned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, of map[string][]int32) {
			s.mu.Lock()
			for topic, partitions := range of {
				if len(partitions) > 0 {
					s.owned[topic] = owned
				}
			}
			if owned {
				s.failed = nil
			}
			s.mu.Unlock()
			changed()
		}
	}
	cl, err := client.New(append(slices.Clone(opts),
		kgo.ConsumerGroup(group), kgo.DisableAutoCommit(), kgo.Balancers(newBalancer()),
		kgo.OnPartitionsAssigned(set(true)), kgo.OnPartitionsRevoked(set(false)), kgo.OnPartitionsLost(set(false)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.WithHooks(failures{s}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("share: %w", err)
	}
	s.cl = cl
	return s, nil
}

// Set makes these the topics that are shared.
func (s *Sharing) Set(topics ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var added []string
	for _, t := range topics {
		if !s.topics[t] {
			added = append(added, t)
			s.topics[t] = true
		}
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(s.topics)), func(t string) bool { return slices.Contains(topics, t) })
	for _, t := range gone {
		delete(s.topics, t)
		delete(s.owned, t)
	}
	if len(gone) > 0 {
		s.cl.PurgeTopicsFromConsuming(gone...)
	}
	if len(added) > 0 {
		s.cl.PauseFetchTopics(added...)
		s.cl.AddConsumeTopics(added...)
	}
}

// Owns reports whether this process owns a topic.
func (s *Sharing) Owns(topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[topic]
}

// failures gets what ended a session of the group. The client tries again.
type failures struct{ s *Sharing }

// OnGroupManageError implements kgo.HookGroupManageError.
func (f failures) OnGroupManageError(err error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.failed = err
}

// Problem returns why this process has no part in the sharing; nil if it has, or if that is not
// known yet.
func (s *Sharing) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Close leaves the group.
func (s *Sharing) Close() { s.cl.Close() }
