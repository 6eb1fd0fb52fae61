package consumers_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/consumers"
)

var errNo = errors.New("no such SKU")

func dial(t *testing.T, k *consumertest.Kafka, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(k.Opts(), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// look looks, and finds no fault.
func look(t *testing.T, cl *kgo.Client, ask consumers.Ask) consumers.Seen {
	t.Helper()
	seen, err := consumers.Look(t.Context(), cl, ask)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func config(group string, handle consumer.Handler) consumer.Config {
	return consumer.Config{
		Topics: []string{"orders"}, Group: group, Handler: handle, Version: "2.3.1",
		Policy: consumer.Policy{Tiers: []time.Duration{time.Minute}, MaxAttempts: 3},
	}
}

func onPartition(p int32, value string, n int) (all []*kgo.Record) {
	for range n {
		all = append(all, &kgo.Record{Topic: "orders", Partition: p, Value: []byte(value)})
	}
	return all
}

// A group of either protocol is seen with its members, their releases and partitions, its lag, and
// what it has parked and until when. One partition's halt is seen, and the other's not.
func TestLook_SeesAConsumerAtWork(t *testing.T) {
	for name, next := range map[string]bool{"classic": false, "KIP-848": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 3)
				cfg := config("billing", func(_ context.Context, r *kgo.Record) error {
					switch string(r.Value) {
					case "busy":
						return classify.Retryable(errNo)
					case "bad":
						return classify.Terminal(errNo)
					}
					return nil
				})
				cfg.Policy.OnTerminal = consumer.Stop
				cfg.Kafka = append(cfg.Kafka, kgo.ClientID("pod-1"))
				if next {
					cfg.Kafka = append(cfg.Kafka, kgo.ServerSideBalancer())
				}
				k.Run(cfg)
				began := time.Now()
				k.Produce(onPartition(1, "busy", 1)...)
				time.Sleep(2 * time.Second)
				k.Produce(onPartition(1, "busy", 2)...)
				k.Produce(onPartition(2, "bad", 4)...)
				time.Sleep(5 * time.Second)
				cl := dial(t, k)
				seen := look(t, cl, consumers.Ask{Topics: []string{"orders", "bills"}})
				if err := seen.FindDue(t.Context(), k.Opts()...); err != nil {
					t.Fatal(err)
				}
				if len(seen.Groups) != 1 || len(seen.Groups[0].Uses) != 1 || len(seen.Groups[0].Members) != 1 || len(seen.Hidden) > 0 {
					t.Fatalf("got %+v", seen)
				}
				g := seen.Groups[0]
				m, u := g.Members[0], g.Uses[0]
				if g.Name != "billing" || g.State != "Stable" || g.Undescribed != nil || g.Idle() {
					t.Errorf("the group is %+v", g)
				}
				if m.ID == "" || m.Client != "pod-1" || m.Host == "" || !slices.Equal(m.Partitions["orders"], []int32{0, 1, 2}) || !slices.Equal(m.Releases, []string{"2.3.1"}) {
					t.Errorf("the member is %+v", m)
				}
				if u.Topic != "orders" || !u.Siding || u.Partitions != 3 || u.Assigned != 3 || u.Lag != 4 || u.Guard != nil || !slices.Equal(u.Releases, m.Releases) {
					t.Errorf("it uses %+v", u)
				}
				if len(u.Lanes) != 1 || len(u.Blocked()) != 1 || u.Lanes[0].Partition != 2 || u.Lanes[0].State != commitmark.Stopped || u.Lanes[0].Lag != 4 || u.Lanes[0].Member != m.ID {
					t.Errorf("lanes are %+v", u.Lanes)
				}
				if len(u.Tiers) != 1 || u.Tiers[0].Topic != "orders.retry.1m" || u.Tiers[0].Delay != time.Minute || u.Tiers[0].Parked != 3 || (u.Tiers[0].NextDue.Sub(began)-time.Minute).Abs() > 10*time.Second {
					t.Errorf("tiers are %+v", u.Tiers)
				}
				if by := look(t, cl, consumers.Ask{Groups: []string{"billing"}}); len(by.Groups) != 1 || len(by.Groups[0].Uses) != 1 || by.Groups[0].Uses[0].Lag != 4 {
					t.Errorf("by the group's name, got %+v", by)
				}
			})
		})
	}
}

// A hold is seen, and so is a permission that a lane lacks, and what a group without members left.
func TestLook_SeesWhatIsHeldDeniedAndIdle(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		var down atomic.Bool
		c := k.Run(config("billing", func(_ context.Context, r *kgo.Record) error {
			if down.Load() {
				return classify.Retryable(errNo)
			}
			if string(r.Value) == "bad" {
				return classify.Terminal(errNo)
			}
			return nil
		}))
		cl := dial(t, k)
		use := func() consumers.Use {
			t.Helper()
			seen := look(t, cl, consumers.Ask{Topics: []string{"orders"}})
			if len(seen.Groups) != 1 || len(seen.Groups[0].Uses) != 1 {
				t.Fatalf("got %+v", seen)
			}
			return seen.Groups[0].Uses[0]
		}
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Produce(onPartition(1, "bad", 1)...)
		time.Sleep(8 * time.Second)
		if u := use(); len(u.Blocked()) != 1 || u.Blocked()[0].State != commitmark.Denied || time.Since(u.Blocked()[0].Since) > 10*time.Second {
			t.Errorf("without a permission, it uses %+v", u)
		}
		fault.Remove()
		time.Sleep(time.Minute)
		if u := use(); len(u.Blocked()) > 0 {
			t.Errorf("with the permission, it uses %+v", u)
		}
		down.Store(true)
		for range 600 {
			k.Produce(onPartition(1, "v", 1)...)
			time.Sleep(50 * time.Millisecond)
		}
		if u := use(); !u.Held() || u.Guard.Class == "" || u.Guard.Waiting <= 0 || u.Lag <= 0 {
			t.Errorf("in an outage, it uses %+v, %+v", u, u.Guard)
		}
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		seen := look(t, cl, consumers.Ask{Topics: []string{"orders"}})
		if g := seen.Groups[0]; !g.Idle() || g.Uses[0].Assigned != 0 || g.Uses[0].Lag <= 0 {
			t.Errorf("without members, the group is %+v", g)
		}
	})
}

// Of a group that is not siding's, members and lag are seen, and nothing that a stranger wrote into
// its commits. A lane that siding does not commit has not started. What cannot be known is unknown.
func TestLook_KnowsStrangersAndUnknowns(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		k.Produce(append(onPartition(2, "v", 3), onPartition(1, "v", 3)...)...)
		foreign := dial(t, k, kgo.ConsumerGroup("foreign"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
		cl := dial(t, k)
		adm := kadm.NewClient(cl)
		commit := func(group string, partition int32, at int64, said string) {
			t.Helper()
			o := kadm.Offsets{}
			o.Add(kadm.Offset{Topic: "orders", Partition: partition, At: at, LeaderEpoch: -1, Metadata: said})
			if err := adm.CommitAllOffsets(t.Context(), group, o); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(15 * time.Second)
		seen := look(t, cl, consumers.Ask{Topics: []string{"orders"}})
		if len(seen.Groups) != 1 || len(seen.Groups[0].Members) != 1 || seen.Groups[0].Uses[0].Lag != consumers.Unknown || seen.Groups[0].Uses[0].Assigned != 3 {
			t.Errorf("of a group that has not committed, got %+v", seen)
		}
		commit("moved", 2, 1, "not ours l=s1 h=h1.YQ n=2 s=3")
		commit("moved", 1, 2, commitmark.Mark+" 1 f=9 l=s1") // of another offset
		commit("dead", 2, 0, commitmark.Mark+" 1 f=0 p=1 n=2 s=2 g=AAI")
		commit("dead", 1, 3, commitmark.Mark)
		commit("dead", 0, 0, commitmark.Mark+" 1 f=0 t=htro8w0")
		seen = look(t, cl, consumers.Ask{Topics: []string{"orders"}})
		if len(seen.Groups) != 3 {
			t.Fatalf("got %+v", seen)
		}
		u := seen.Groups[0].Uses[0]
		if !u.Siding || u.Lag != 3 || len(u.Lanes) != 2 || u.Lanes[1].Suspects != (commitmark.Suspects{Deaths: 2, Below: 2, Isolated: true}) || u.Lanes[0].OpenSince.IsZero() || len(u.Blocked()) > 0 {
			t.Errorf("of suspects and a transaction, got %+v", u)
		}
		if u := seen.Groups[2].Uses[0]; u.Lag != 2+1 || len(u.Lanes) > 0 || u.Guard != nil {
			t.Errorf("of what is not about the offset, got %+v", u)
		}
		marked := kgo.PreCommitFnContext(t.Context(), func(req *kmsg.OffsetCommitRequest) error {
			req.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(commitmark.Mark)
			return nil
		})
		foreign.CommitOffsetsSync(marked, map[string]map[int32]kgo.EpochOffset{"orders": {1: {Epoch: -1, Offset: 3}}}, nil)
		if u := look(t, cl, consumers.Ask{Groups: []string{"foreign"}}).Groups[0].Uses[0]; len(u.Blocked()) != 2 || !u.Blocked()[0].Uncommitted || u.Lag != consumers.Unknown {
			t.Errorf("of lanes that have not started, got %+v", u)
		}
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Partitions: []int32{1}, Count: -1, Err: kerr.KafkaStorageError})
		if seen, _ := consumers.Look(t.Context(), cl, consumers.Ask{Groups: []string{"dead"}}); len(seen.Groups) != 1 || seen.Groups[0].Uses[0].Lag != consumers.Unknown {
			t.Errorf("without an end, got %+v", seen)
		}
	})
}

// Groups that the user may not see are named, and do not hide the others of their coordinator.
func TestLook_NamesWhatIsHidden(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		k.Run(config("billing", func(context.Context, *kgo.Record) error { return nil }))
		k.Run(config("shipping", func(context.Context, *kgo.Record) error { return nil }))
		time.Sleep(2 * time.Second)
		k.Cluster.ControlKey(int16(kmsg.DescribeGroups), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
			for _, g := range req.(*kmsg.DescribeGroupsRequest).Groups {
				of := kmsg.NewDescribeGroupsResponseGroup()
				of.Group = g
				if of.State = "Empty"; g == "billing" {
					of.ErrorCode, of.State = kerr.GroupAuthorizationFailed.Code, ""
				}
				resp.Groups = append(resp.Groups, of)
			}
			return resp, nil, true
		})
		cl := dial(t, k)
		seen := look(t, cl, consumers.Ask{Topics: []string{"orders"}})
		if len(seen.Groups) != 2 || !errors.Is(seen.Groups[0].Undescribed, kerr.GroupAuthorizationFailed) || seen.Groups[0].Idle() || !seen.Groups[1].Idle() {
			t.Errorf("got %+v", seen)
		}
		k.Cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			for _, g := range req.(*kmsg.OffsetFetchRequest).Groups {
				if g.Group == "shipping" {
					resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
					resp.Groups = []kmsg.OffsetFetchResponseGroup{{Group: g.Group, ErrorCode: kerr.GroupAuthorizationFailed.Code}}
					return resp, nil, true
				}
			}
			return nil, nil, false
		})
		seen = look(t, cl, consumers.Ask{Groups: []string{"shipping"}})
		if !slices.Equal(seen.Hidden, []string{"shipping"}) {
			t.Errorf("got %+v", seen)
		}
	})
}

// expired is a context that has ended.
func expired(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}
