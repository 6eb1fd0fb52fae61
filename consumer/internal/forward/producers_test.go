package forward

import (
	"context"
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
