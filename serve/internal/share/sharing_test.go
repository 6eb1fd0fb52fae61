package share_test

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve/internal/share"
)

// Each topic has one owner, whichever processes come and go.
func TestSharing_EachTopicHasOneOwner(t *testing.T) {
	t.Parallel()
	topics := []string{"a.dlq", "b.dlq", "c.dlq", "d.dlq", "e.dlq"}
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	join := func() *share.Sharing {
		s, err := share.Join("servers", func() {}, kgo.SeedBrokers(fake.ListenAddrs()...), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(200*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		s.Set(topics...)
		return s
	}
	// owned waits until each topic has one owner among the members, and returns their shares.
	owned := func(members ...*share.Sharing) (counts []int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			counts = make([]int, len(members))
			complete := true
			for _, topic := range topics {
				owners := 0
				for i, m := range members {
					if m.Owns(topic) {
						counts[i]++
						owners++
					}
				}
				complete = complete && owners == 1
			}
			if complete && !slices.Contains(counts, 0) {
				return counts
			}
			if time.Now().After(end) {
				t.Fatalf("the members own %v of %d topics", counts, len(topics))
			}
		}
	}
	a := join()
	owned(a)
	b := join()
	owned(a, b)
	c := join()
	owned(a, b, c)
	b.Close()
	owned(a, c)
	a.Close()
	owned(c)
	c.Set(topics[:2]...)
	if c.Owns(topics[4]) {
		t.Error("a topic that is not shared any more has an owner")
	}
	c.Close()
}
