package consumer_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// Records that finish in one moment are committed also while the handler of the next one, which the
// worker took with them, runs for minutes. A crash then repeats none of them.
func TestConsumerCommit_PassesWhatFinishedBeforeASlowRecord(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		slow := make(chan struct{})
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Offset == 5 {
				<-slow
			}
			return nil
		})
		cfg.Order, cfg.Policy.HandlerTimeout = order, -1
		k.Run(cfg)
		k.Produce(many(9)...)
		time.Sleep(3 * time.Second)
		if at := k.Cluster.GroupInfo("billing").Commits["orders"][0].Offset; at != 5 {
			t.Errorf("%d is committed while record 5 runs, want 5", at)
		}
		close(slow)
		committed(t, k, "orders", 0, 9)
	})
}

// watchCommits fails the test when a committed offset goes back.
func watchCommits(t *testing.T, k *consumertest.Kafka) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
	})
	wg.Go(func() {
		last := map[string]kfake.GroupCommit{}
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			info := k.Cluster.GroupInfo("billing")
			if info == nil {
				continue
			}
			for topic, partitions := range info.Commits {
				for p, now := range partitions {
					at := fmt.Sprintf("%s/%d", topic, p)
					if before, ok := last[at]; ok && now.Offset < before.Offset {
						t.Errorf("%s: %d is committed after %d was", at, now.Offset, before.Offset)
					}
					last[at] = now
				}
			}
		}
	})
}

// The broker checks membership, not ownership. So an expelled member that joins again could
// overwrite the offsets that other members committed meanwhile.
func TestConsumerCommit_ExpelledMemberRewindsNothing(t *testing.T) {
	cases.Skip(t)
	each(t, map[string]time.Duration{
		"by a heartbeat": 200 * time.Millisecond, "by a refused commit": 8 * time.Second,
	}, 4, func(t *testing.T, k *consumertest.Kafka, heartbeat time.Duration) {
		watchCommits(t, k)
		cfg := config(handle)
		cfg.Kafka = []kgo.Opt{kgo.HeartbeatInterval(heartbeat)}
		k.Run(cfg)
		k.Produce(many(300)...)
		k.Run(cfg)
		for range 5 {
			k.Produce(many(100)...)
			expel(t, k, 0)
			time.Sleep(700 * time.Millisecond)
		}
		k.Conserved()
	})
}

// What finished above the floor runs again neither after a crash nor after a clean end.
func TestConsumerCommit_FinishedAboveTheFloorRunsOnce(t *testing.T) {
	ends := map[string]func(*testing.T, *consumertest.Kafka, *consumertest.Consumer){
		"killed":  kill,
		"stopped": func(t *testing.T, _ *consumertest.Kafka, c *consumertest.Consumer) { _ = c.Stop() },
	}
	each(t, cases.Cross(cases.Cross(balancers, ends), map[string]consumer.Order{"key": consumer.OrderKey, "none": consumer.OrderNone}), 1,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[[]kgo.Opt, func(*testing.T, *consumertest.Kafka, *consumertest.Consumer)], consumer.Order]) {
			var calls atomic.Int64
			var hang atomic.Bool
			hang.Store(true)
			var done ran
			cfg := config(done.after(func(ctx context.Context, r *kgo.Record) error {
				calls.Add(1)
				if (r.Offset == 0 || r.Offset == 2) && hang.Load() {
					<-ctx.Done()
				}
				// in a tier some finish above its floor as well
				if r.Offset%50 == 7 && r.Offset < 2000 {
					return busyOnce(ctx, r)
				}
				return ctx.Err()
			}))
			cfg.Kafka, cfg.Order = c.A.A, c.B
			first := k.Run(cfg)
			slow := k.Produce(
				&kgo.Record{Topic: "orders", Key: []byte("alone"), Value: []byte("slow")},
				&kgo.Record{Topic: "orders", Key: []byte("between"), Value: []byte("fast")},
				&kgo.Record{Topic: "orders", Key: []byte("alone, too"), Value: []byte("slow")},
			)
			slow = []*kgo.Record{slow[0], slow[2]}
			rest := k.Produce(many(2000)...)
			done.all(t, rest)
			time.Sleep(time.Second) // more than a commit
			committed(t, k, "orders", 0, 0)
			c.A.B(t, k, first)
			second := k.Run(cfg) // the slow records hang again
			done.all(t, k.Produce(&kgo.Record{Topic: "orders", Key: []byte("other"), Value: []byte("x")}))
			time.Sleep(time.Second)
			committed(t, k, "orders", 0, 0)
			c.A.B(t, k, second)
			hang.Store(false)
			calls.Store(0)
			k.Run(cfg)
			records := slices.Concat(slow, k.Produce(many(10)...))
			done.all(t, records)
			committed(t, k, "orders", 0, 2014)
			if n := calls.Load(); n != int64(len(records)) {
				t.Errorf("%d calls after the restart, want %d: of the slow records, and of those that came since", n, len(records))
			}
			k.Conserved()
		})
}

// Trap 7: a broker may store less than siding asks for. Then it keeps what lies nearest to the
// floor.
func TestConsumerCommit_MetadataIsShortenedUntilItFits(t *testing.T) {
	each(t, balancers, 1, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		const most = 100
		k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			commit := req.(*kmsg.OffsetCommitRequest)
			resp := commit.ResponseKind().(*kmsg.OffsetCommitResponse)
			tooLarge := false
			for _, t := range commit.Topics {
				rt := kmsg.NewOffsetCommitResponseTopic()
				rt.Topic, rt.TopicID = t.Topic, t.TopicID
				for _, p := range t.Partitions {
					rp := kmsg.NewOffsetCommitResponseTopicPartition()
					rp.Partition = p.Partition
					if p.Metadata != nil && len(*p.Metadata) > most {
						rp.ErrorCode, tooLarge = kerr.OffsetMetadataTooLarge.Code, true
					}
					rt.Partitions = append(rt.Partitions, rp)
				}
				resp.Topics = append(resp.Topics, rt)
			}
			return resp, nil, tooLarge
		})
		var done ran
		var again sync.Map
		cfg := config(done.after(func(ctx context.Context, r *kgo.Record) error {
			if r.Offset%2 == 0 && r.Offset < 1500 {
				<-ctx.Done()
				return ctx.Err()
			}
			again.Store(r.Offset, true)
			return nil
		}))
		cfg.Kafka, cfg.Order, cfg.Concurrency = opts, consumer.OrderNone, -1
		log := logged(&cfg)
		first := k.Run(cfg)
		records := k.Produce(many(2000)...)
		odd := slices.DeleteFunc(slices.Clone(records), func(r *kgo.Record) bool { return r.Offset%2 == 0 && r.Offset < 1500 })
		done.all(t, odd)
		time.Sleep(time.Second)
		info := k.Cluster.GroupInfo("billing").Commits["orders"][0]
		if len(info.Metadata) > most || len(info.Metadata) < most/2 {
			t.Fatalf("committed with %+v, want metadata of %d to %d characters", info, most/2, most)
		}
		log.has(t, 1, "level=WARN", "the brokers store less with an offset", "now=64")
		kill(t, k, first)
		again.Clear()
		k.Run(cfg)
		time.Sleep(5 * time.Second)
		n := 0
		again.Range(func(any, any) bool { n++; return true })
		if n == 0 || n >= len(odd)-50 {
			t.Errorf("%d of %d finished records run again, want all but those nearest to the floor", n, len(odd))
		}
	})
}

// Records that an earlier owner has finished lie between records that it has not. When the next
// owner passed over the former, it forgot the latter: they ran, and the offset was committed beyond
// them before they finished. A crash then lost them. Chaos found it with seeds 31 and 41.
func TestConsumerCommit_FloorStaysAtUnfinishedBetweenFinished(t *testing.T) {
	for name, order := range map[string]consumer.Order{"partition": consumer.OrderPartition, "none": consumer.OrderNone} {
		t.Run(name, func(t *testing.T) {
			onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
				records := k.Produce(many(20)...)
				adm := kadm.NewClient(client(t, k))
				var at kadm.Offsets
				// 6 to 9, 11 to 14
				at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 5, LeaderEpoch: 0, Metadata: "siding 1 b=3gM"})
				if _, err := adm.CommitOffsets(t.Context(), "billing", at); err != nil {
					t.Fatal(err)
				}
				repaired := make(chan struct{})
				var done ran
				cfg := config(done.after(func(ctx context.Context, _ *kgo.Record) error {
					select {
					case <-repaired:
					case <-ctx.Done():
					}
					return ctx.Err()
				}))
				cfg.Order = order
				k.Run(cfg)
				time.Sleep(5 * time.Second) // more than a commit
				if at := k.Cluster.GroupInfo("billing").Commits["orders"][0].Offset; at != 5 {
					t.Errorf("while nothing finishes, %d is committed, want 5", at)
				}
				close(repaired)
				done.all(t, append([]*kgo.Record{records[5], records[10]}, records[15:]...))
				committed(t, k, "orders", 0, 20)
			})
		})
	}
}

// Under KIP-848 a broker refuses a whole request for one stale epoch. The source of a lane must not
// be committed without its tiers then.
func TestConsumerCommit_StaleEpochRepeatsTheWholeRequest(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		names := func(req *kmsg.OffsetCommitRequest) (all []string) {
			for _, t := range req.Topics {
				for _, p := range t.Partitions {
					all = append(all, fmt.Sprintf("%v/%d", cmp.Or(t.Topic, fmt.Sprint(t.TopicID)), p.Partition))
				}
			}
			slices.Sort(all)
			return all
		}
		var mu sync.Mutex
		var refused, repeated []string
		var stale int32
		k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			mu.Lock()
			defer mu.Unlock()
			commit := req.(*kmsg.OffsetCommitRequest)
			switch {
			case refused == nil && len(names(commit)) > 3:
				refused, stale = names(commit), commit.Generation
			case repeated == nil && refused != nil && commit.Generation > stale:
				repeated = names(commit)
				return nil, nil, false
			case refused == nil || repeated != nil:
				return nil, nil, false
			}
			resp := commit.ResponseKind().(*kmsg.OffsetCommitResponse)
			for _, t := range commit.Topics {
				rt := kmsg.NewOffsetCommitResponseTopic()
				rt.Topic, rt.TopicID = t.Topic, t.TopicID
				for _, p := range t.Partitions {
					rp := kmsg.NewOffsetCommitResponseTopicPartition()
					rp.Partition, rp.ErrorCode = p.Partition, kerr.StaleMemberEpoch.Code
					rt.Partitions = append(rt.Partitions, rp)
				}
				resp.Topics = append(resp.Topics, rt)
			}
			return resp, nil, true
		})
		var done ran
		cfg := config(done.after(busyOnce))
		cfg.Kafka = []kgo.Opt{kgo.ServerSideBalancer()}
		k.Run(cfg)
		k.Run(cfg) // a new member raises the epoch of the first one
		done.all(t, k.Produce(many(400)...))
		k.Conserved()
		mu.Lock()
		defer mu.Unlock()
		// One lane may have gone to the new member meanwhile.
		if len(repeated) != 3 && len(repeated) != 6 || slices.ContainsFunc(repeated, func(name string) bool { return !slices.Contains(refused, name) }) {
			t.Errorf("%q was refused, and repeated as %q: want whole lanes, of three topics each", refused, repeated)
		}
	})
}

// Trap 28: the group's offsets on the retry topics expire, since no member subscribes to them
// (KIP-211). They are committed again each day, those of a tier that is only drained too.
func TestConsumerCommit_IdleTiersOffsetsDoNotExpire(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		expireOffsets(t, k, "1500") // 25 hours
		cfg := config(busyOnce)
		// see quietly
		cfg.Kafka = []kgo.Opt{kgo.FetchMaxWait(time.Hour), kgo.HeartbeatInterval(20 * time.Second)}
		cfg.CommitInterval = time.Minute
		drained := cfg
		drained.Policy.Tiers = []time.Duration{time.Second, 3 * time.Second}
		first := k.Run(drained)
		handledOnce(k, k.Produce(many(20)...))
		stop(t, first)
		c := k.Run(cfg)
		want := map[string]int64{}
		for _, l := range c.Health().Lanes {
			for _, o := range l.Offsets {
				want[fmt.Sprint(o.Topic, "/", l.Partition)] = o.Next
			}
		}
		if len(want) != 10 {
			t.Fatalf("the lanes have the partitions %v, want those of the source, two tiers and two drained ones", want)
		}
		time.Sleep(26 * time.Hour)
		commits := k.Cluster.GroupInfo("billing").Commits
		for _, l := range c.Health().Lanes {
			for _, o := range l.Offsets {
				at, ok := commits[o.Topic][l.Partition]
				if name := fmt.Sprint(o.Topic, "/", l.Partition); !ok || at.Offset != want[name] {
					t.Errorf("%s: %d is committed (%v) after 26 idle hours, want %d", name, at.Offset, ok, want[name])
				}
			}
		}
	})
}
