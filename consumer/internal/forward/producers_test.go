package forward

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/bubble"
)

// madeAndClosed counts the clients that a hook of the user's sees.
type madeAndClosed struct{ made, closed atomic.Int32 }

func (h *madeAndClosed) OnNewClient(*kgo.Client)    { h.made.Add(1) }
func (h *madeAndClosed) OnClientClosed(*kgo.Client) { h.closed.Add(1) }

// refusing is a broker that refuses producer ids while a fault stands, and clients of it.
func refusing(t *testing.T) (*producers, *madeAndClosed, *kfake.FaultHandle) {
	t.Helper()
	var vn kfake.VirtualNetwork
	cluster, err := bubble.NewCluster(&vn, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders.dlq"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, TopLevel: true, Count: -1})
	hook := &madeAndClosed{}
	ps := &producers{open: func() (*kgo.Client, error) {
		return kgo.NewClient(append(bubble.Opts(&vn), kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.WithHooks(hook), kgo.DisableClientMetrics())...)
	}}
	t.Cleanup(ps.close)
	return ps, hook, fault
}

// write has a copy written by whatever client is current, with tries as a lane has them, and
// returns how often.
func write(t *testing.T, ps *producers) (tries int) {
	for {
		tries++
		p, err := ps.take()
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan error, 1)
		p.TryProduce(context.Background(), &kgo.Record{Topic: "orders.dlq"}, func(_ *kgo.Record, err error) {
			answer <- err
			p.back()
		})
		err = <-answer
		if err == nil {
			return tries
		}
		handover{p, p.staleIDs.generation.Load()}.refused("orders.dlq", err)
		ps.makeReady(context.Background(), "orders.dlq")
		time.Sleep(time.Second)
	}
}

// kgo keeps a refusal of its producer id for a client's life. The client is replaced once a broker
// gives ids again, and not before: a user whose hooks count clients sees one more, and the old one
// closed.
func TestProducers_ReplaceARefusedOneOnceABrokerGivesIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ps, hook, fault := refusing(t)
		go func() {
			time.Sleep(time.Hour)
			fault.Remove()
		}()
		if tries := write(t, ps); tries < 3500 || tries > 3610 {
			t.Errorf("%d tries a second apart, want as many as the hour has", tries)
		}
		// Each try asks kgo, which remembers. A broker is asked once in five seconds.
		if n := fault.Hits(); n < 600 || n > 800 {
			t.Errorf("the broker was asked for an id %d times in an hour, want once in five seconds", n)
		}
		synctest.Wait()
		if made, closed := hook.made.Load(), hook.closed.Load(); made != 2 || closed != 1 {
			t.Errorf("%d clients were made, and %d closed; want one in the place of the other", made, closed)
		}
		write(t, ps)
		ps.close()
		if made, closed := hook.made.Load(), hook.closed.Load(); made != closed || len(ps.unclosed) > 0 {
			t.Errorf("%d clients were made, and %d closed at the end", made, closed)
		}
		if _, err := ps.take(); err == nil {
			t.Error("a client is given out after the end")
		}
	})
}

// A copy may be with a client that is replaced: it is not closed under it.
func TestProducers_CloseOneWhenItsLastCopyHasComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ps, hook, fault := refusing(t)
		old, err := ps.take() // a copy that does not come back yet
		if err != nil {
			t.Fatal(err)
		}
		fault.Remove()
		ps.mu.Lock()
		_, err = ps.next()
		ps.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		old.closeUnused()
		synctest.Wait()
		if n := hook.closed.Load(); n != 0 {
			t.Fatal("a client is closed that has a copy")
		}
		old.back()
		synctest.Wait()
		if n := hook.closed.Load(); n != 1 {
			t.Errorf("%d clients are closed, want the one that has no copy any more", n)
		}
	})
}

// Copies are handed over while clients are replaced: each comes back, and none is given to a client
// that is closed.
func TestProducers_GiveNoCopyToOneThatIsClosed(t *testing.T) {
	t.Parallel()
	ps, hook, fault := refusing(t)
	fault.Remove()
	const lanes, copies, times = 4, 200, 20
	var wg, answers sync.WaitGroup
	var failed atomic.Value
	answers.Add(lanes * copies)
	for range lanes {
		wg.Go(func() {
			for range copies {
				p, err := ps.take()
				if err != nil {
					failed.Store(err)
					answers.Done()
					continue
				}
				p.TryProduce(context.Background(), &kgo.Record{Topic: "orders.dlq"}, func(_ *kgo.Record, err error) {
					if err != nil {
						failed.Store(err)
					}
					p.back()
					answers.Done()
				})
			}
		})
	}
	for range times {
		p, err := ps.current()
		if err != nil {
			t.Fatal(err)
		}
		ps.mu.Lock()
		_, err = ps.next()
		ps.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		p.closeUnused()
	}
	wg.Wait()
	answers.Wait()
	if err, _ := failed.Load().(error); err != nil {
		t.Errorf("a copy failed: %v", err)
	}
	ps.close()
	if made, closed := hook.made.Load(), hook.closed.Load(); made != closed {
		t.Errorf("%d clients were made, and %d closed", made, closed)
	}
}

// sendsAlone sends copies to a topic that are refused in a batch, and are to be sent alone.
func sendsAlone(t *testing.T, s *Copies, l *testLane, topic string, offsets ...int64) (all []*Copy) {
	t.Helper()
	for _, at := range offsets {
		c := NewCopy(l, at, kgo.Record{Topic: topic, Value: []byte("value")})
		s.Send(c)
		s.returned(c, kerr.MessageTooLarge)
		all = append(all, c)
	}
	return all
}

func TestSingleSender_SendsOneAtATimeToAPartition(t *testing.T) {
	t.Parallel()
	kgos := &handedOver{to: map[*Copy]bool{}}
	s, l := testCopies(t, Omit, kgos.silent(false), kgos.silent(true))
	letters := sendsAlone(t, s, l, "orders.dlq", 0, 1)
	parked := sendsAlone(t, s, l, "orders.retry.5s", 2)
	alone := func(c *Copy) bool { return kgos.all()[c] }
	if !alone(letters[0]) || alone(letters[1]) || !alone(parked[0]) {
		t.Fatalf("sent alone: %v and %v to one topic, %v to another; want one of the first two, and the third",
			alone(letters[0]), alone(letters[1]), alone(parked[0]))
	}
	s.Clients.single.promise(&kgo.Record{Topic: "orders.dlq", Context: copyContext{letters[0]}}, nil)
	if !alone(letters[1]) || !l.finishedNow()[0] {
		t.Errorf("behind a copy that is safe (finished: %v), the next is sent: %v", l.finishedNow()[0], alone(letters[1]))
	}
}

// A lane that was revoked left copies in line behind one that hangs. The partition comes back: its
// copies go in their turn, and no copy of the lane before is sent.
func TestSingleSender_SkipsWhatALaneGaveUp(t *testing.T) {
	t.Parallel()
	kgos := &handedOver{to: map[*Copy]bool{}}
	before, l := testCopies(t, Omit, kgos.silent(false), kgos.silent(true))
	ctx, abandon := context.WithCancel(t.Context())
	before.Context = ctx
	old := sendsAlone(t, before, l, "orders.dlq", 0, 1, 2)
	l.Lock()
	before.Close()
	l.Unlock()
	abandon()
	again := &testLane{finished: map[int64]bool{}}
	after := &Copies{}
	cfg := before.Config
	cfg.Lane, cfg.Observer, cfg.Context = again, again, t.Context()
	after.Init(cfg)
	fresh := sendsAlone(t, after, again, "orders.dlq", 0)
	if n := after.Clients.single.queues[fresh[0].at()].Len(); n != 1 {
		t.Errorf("%d copies are in line, want the one that its lane wants", n)
	}
	after.Clients.single.promise(&kgo.Record{Topic: "orders.dlq", Context: copyContext{old[0]}}, kgo.ErrClientClosed)
	if to := kgos.all(); !to[fresh[0]] || to[old[1]] || to[old[2]] {
		t.Errorf("sent alone: the fresh copy %v, those given up %v and %v", to[fresh[0]], to[old[1]], to[old[2]])
	}
}

func TestBatchLimits_AreTheLowerOfUserAndTopic(t *testing.T) {
	t.Parallel()
	var l BatchLimits
	of := l.Within(func(string) int32 { return 1_000_000 })
	for topic, n := range map[string]int64{"small": 9_000, "large": 2_000_000, "endless": math.MaxInt64, "tiny": 1} {
		l.Learn(topic, n)
	}
	for topic, want := range map[string]int32{"unknown": 1_000_000, "small": 9_000, "large": 1_000_000, "endless": 1_000_000, "tiny": leastBatch} {
		if got := of(topic); got != want {
			t.Errorf("%s: a batch may have %d bytes, want %d", topic, got, want)
		}
	}
}
