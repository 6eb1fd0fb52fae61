package consumer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/internal/cases"
)

// The broker checks that the member is in the group, not that it owns the partition. So a commit
// must not contain a lane that is gone, or that belongs to a later membership.
func TestConsumerCommit_NamesOnlyLanesOfItsMembership(t *testing.T) {
	t.Parallel()
	c := idle(t, Config{}, func() {})
	mine, old, gone, drains := held(c, 0, "m2"), held(c, 1, "m1"), held(c, 2, "m2"), held(c, 3, "m2")
	gone.close()
	drains.mu.Lock()
	drains.setState(laneDraining, "")
	drains.mu.Unlock()
	for member, want := range map[string][]string{
		"m1": {"orders/1 siding", "orders.retry.5s/1 siding"},
		"m2": {"orders/0 siding", "orders/3 siding", "orders.retry.5s/0 siding", "orders.retry.5s/3 siding"},
		"m3": nil,
	} {
		entries := map[topicPartition]commitEntry{}
		req := kmsg.NewPtrOffsetCommitRequest()
		req.MemberID = member
		for i := range 2 {
			rt := kmsg.NewOffsetCommitRequestTopic()
			rt.Topic = feedAt(mine, i).topic
			for _, l := range []*lane{mine, old, gone, drains} {
				entries[topicPartition{rt.Topic, l.partition}] = commitEntry{feed: feedAt(l, i), metadata: "siding"}
				p := kmsg.NewOffsetCommitRequestTopicPartition()
				p.Partition = l.partition
				rt.Partitions = append(rt.Partitions, p)
			}
			req.Topics = append(req.Topics, rt)
		}
		committer{c}.completeCommit(req, entries)
		var got []string
		for _, rt := range req.Topics {
			for _, p := range rt.Partitions {
				got = append(got, fmt.Sprintf("%s/%d %s", rt.Topic, p.Partition, *p.Metadata))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the commit goes out with %q, want %q", member, got, want)
		}
	}
}

// The floor of a tier means nothing in a recreated topic. The broker distinguishes the two by their
// ids.
func TestConsumerCommit_NamesTheTopicATierWasReadFrom(t *testing.T) {
	t.Parallel()
	c := idle(t, Config{}, func() {})
	old, recreated := kadm.TopicID{1}, kadm.TopicID{2}
	entries := map[topicPartition]commitEntry{}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.MemberID = "m"
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = "orders.retry.5s"
	for p, id := range []kadm.TopicID{recreated, old, recreated} {
		l := held(c, int32(p), "m")
		entries[topicPartition{rt.Topic, l.partition}] = commitEntry{feed: feedAt(l, 1), id: id}
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition = l.partition
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	committer{c}.completeCommit(req, entries)
	got := req.Topics[0]
	if got.TopicID != recreated || len(got.Partitions) != 2 || got.Partitions[0].Partition != 0 || got.Partitions[1].Partition != 2 {
		t.Errorf("the commit goes out as %+v, want partitions 0 and 2 under the id %v", got, recreated)
	}
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	answer := kmsg.NewOffsetCommitResponseTopic()
	answer.TopicID = recreated // without a name, as from version 10 on
	answer.Partitions = []kmsg.OffsetCommitResponseTopicPartition{{Partition: 0}, {Partition: 2}}
	resp.Topics = append(resp.Topics, answer)
	e := entries[topicPartition{rt.Topic, 2}]
	e.state.Floor = 7
	entries[topicPartition{rt.Topic, 2}] = e
	if err := (committer{c}).committed(req, resp, entries); err != nil || e.feed.tracker.Committed != 7 {
		t.Errorf("after the answer %d counts as committed (%v), want 7", e.feed.tracker.Committed, err)
	}
}

// A commit that a lane asks for costs by the lanes that ask: another lane's lock is not even taken.
// The queue has what a look at all lanes would find, whatever commits fail, and whichever lanes are
// asked about by the isolator, closed or replaced meanwhile.
func TestConsumerCommit_QueueHasTheLanesThatAsk(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(8) {
		c := idle(t, Config{Policy: Policy{CrashLimit: 3}}, func() {})
		rnd := rand.New(rand.NewPCG(1, seed))
		fresh := func(partition int32) {
			l := held(c, partition, "m")
			l.mu.Lock()
			defer l.mu.Unlock()
			l.positionsLoaded = true
			for f := range l.read() {
				at := beginAt(0)
				at.said.Suspect = 8
				f.start(at)
				// the commit that starts the lane
				f.window.Accept(offsets.Evidence{}, f.window.Asked())
			}
		}
		const lanes = 6
		for p := range int32(lanes) {
			fresh(p)
		}
		for step := range 400 {
			l := c.lane("orders", rnd.Int32N(lanes))
			f := feedAt(l, rnd.IntN(2))
			switch rnd.IntN(8) {
			case 0: // replaced: its asks are over, and the other lane has none
				fresh(l.partition)
				if rnd.IntN(2) == 0 {
					l.close()
				}
			case 1:
				suspectFeed{f}.Locked(func(is *isolate.State) {
					if is.Running {
						is.Window.AskAgain()
					}
				})
			case 2, 3, 4:
				l.mu.Lock()
				f.window.Ask()
				l.mu.Unlock()
			default:
				asking := committer{c}.asking()
				for _, l := range asking {
					if rnd.IntN(3) == 0 {
						continue // its part of the commit failed
					}
					for f := range l.read() {
						f.window.Accept(offsets.Evidence{}, f.window.Asked())
					}
				}
				committer{c}.stillAsking(asking)
			}
			want := slices.DeleteFunc(c.lanesNow(), func(l *lane) bool { return !l.asksForCommit() })
			got := committer{c}.asking()
			committer{c}.stillAsking(got)
			byPartition := func(a, b *lane) int { return int(a.partition - b.partition) }
			slices.SortFunc(want, byPartition)
			slices.SortFunc(got, byPartition)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: the queue has %v, while %v ask", seed, step, got, want)
			}
		}
		asks, busy := c.lane("orders", 0), c.lane("orders", 1)
		c.asks.Take()
		asks.mu.Lock()
		asks.source.window.AskAgain()
		c.asks.Add(asks)
		asks.mu.Unlock()
		busy.mu.Lock()
		found := make(chan []*lane)
		go func() { found <- committer{c}.asking() }()
		select {
		case got := <-found:
			if !slices.Equal(got, []*lane{asks}) {
				t.Errorf("seed %d: the queue has %v, want %v", seed, got, asks)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("seed %d: an ask of %v waits for the lock of %v, which asks for nothing", seed, asks, busy)
		}
		busy.mu.Unlock()
	}
}

// A join that does not end holds up commits, as a broker does that is down. Only the log reports
// it.
func TestConsumerCommit_LogsAWaitForAJoin(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var log bytes.Buffer
		c := unstarted(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func() {})
		c.commitTimeout = 15 * time.Second
		ending, end := context.WithCancel(t.Context())
		end()
		if err := (committer{c}).commit(ending, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("commit of a consumer that ends returned %v", err)
		}
		if log.Len() > 0 {
			t.Errorf("a commit of a consumer that ends says: %s", log.String())
		}
		// a consumer has not joined yet when it begins
		finished := withFeeds(&lane{c: c, topic: "orders"})
		if err := (committer{c}).commit(t.Context(), []*lane{finished}); err != nil || log.Len() > 0 {
			t.Errorf("without anything to commit, commit returned %v and says: %s", err, log.String())
		}
		finished.positionsLoaded = true
		finished.source.tracker = offsets.New(7, 6)
		began := time.Now()
		for range 3 {
			if err := (committer{c}).commit(t.Context(), []*lane{finished}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("commit returned %v, want that its time is over", err)
			}
		}
		if took := time.Since(began); took != 45*time.Second {
			t.Errorf("three commits took %v, want 15s each", took)
		}
		const message = "offsets not committed because the member is joining"
		if n := strings.Count(log.String(), message); n != 1 || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "waited=15s") {
			t.Errorf("want once that commits wait for the join:\n%s", log.String())
		}
		time.Sleep(time.Minute)
		_ = committer{c}.commit(t.Context(), []*lane{finished})
		if n := strings.Count(log.String(), message); n != 2 {
			t.Errorf("logged %d times, want once more a minute later", n)
		}
	})
}
