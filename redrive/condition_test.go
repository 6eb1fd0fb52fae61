package redrive_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
)

// heldError fails the test unless an error says that a run is left to the process that has it.
func heldError(t *testing.T, err error, words string) *redrive.RefusedError {
	t.Helper()
	e, ok := errors.AsType[*redrive.RefusedError](err)
	if !ok || e.Reason != redrive.RefusedOwned || e.Run == nil || !strings.Contains(e.Detail, words) {
		t.Fatalf("the error is %v, want one that says %q", err, words)
	}
	return e
}

// asWritten writes a run's record again, as a process with a wrong clock would.
func asWritten(t *testing.T, k *consumertest.Kafka, id string, change map[string]any) {
	t.Helper()
	var rec map[string]any
	if err := json.Unmarshal(readLedger(t, k).Runs()[id], &rec); err != nil {
		t.Fatal(err)
	}
	delete(rec, "stoppedAt")
	maps.Copy(rec, change)
	text, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	k.Produce(ledgerrecord.Run("orders.dlq.ledger", id, text))
}

// interrupted is a run of 20 letters that stopped early.
func interrupted(t *testing.T, k *consumertest.Kafka) (*redrive.Redriver, *redrive.Plan) {
	t.Helper()
	letters(t, k, 20, succeeding)
	r, p := planned(t, k)
	stopped(t, r, p, redrive.Pace{Rate: 5, Ramp: -1}, 5)
	return r, p
}

// heldUp opens a transaction on a topic and aborts it some time later: committed readers wait.
func heldUp(t *testing.T, k *consumertest.Kafka, topic string, during time.Duration) (ended <-chan struct{}) {
	t.Helper()
	cl := clientOf(t, k, kgo.TransactionalID("another-process"))
	if err := errors.Join(cl.BeginTransaction(), cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte("nothing")}).FirstErr()); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		time.Sleep(during)
		if err := cl.EndTransaction(context.Background(), kgo.TryAbort); err != nil {
			t.Error(err)
		}
	}()
	return over
}

func TestResume_LeavesARunThatGoesOn(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 100, succeeding)
		first, second := redriver(t, k), redriver(t, k)
		p := plan(t, first)
		half, ended := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		var taking atomic.Bool
		go func() {
			_, err := first.Run(t.Context(), p, ann(redrive.Pace{Rate: 5, Ramp: -1}, func(e redrive.Event) {
				if !taking.Load() && strings.Contains(e.Message, "another process") {
					t.Errorf("the run is disturbed: %s", e.Message)
				}
				if e.Counts.Sent > 50 {
					once.Do(func() { close(half) })
				}
			}))
			ended <- err
		}()
		<-half
		_, err := second.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfSilent())
		_ = heldError(t, err, " last heartbeat of ")
		held := heldError(t, second.Abort(t.Context(), "orders.dlq", p.ID, byAnn, redrive.IfSilent()), "run orders.dlq/"+p.ID+" is running: the last heartbeat of ann on ")
		_, err = second.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfClaim("another"))
		_ = heldError(t, err, "took it over meanwhile")
		// as of a field that is missing: they took it
		for _, unread := range []redrive.Condition{redrive.IfClaim(""), {}} {
			_ = heldError(t, second.Abort(t.Context(), "orders.dlq", p.ID, byAnn, unread), "took it over meanwhile")
		}
		time.Sleep(10 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("the run ended with %v", err)
		default:
		}
		taking.Store(true)
		succeeds(t, 100)(second.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfClaim(held.Run.Claim)))
		if err := <-ended; !errors.Is(err, redrive.ErrTaken) {
			t.Errorf("the one that it was taken from ended with %v", err)
		}
	})
}

// The claim does not wait for a process that recorded that it stopped.
func TestResume_TakesARunThatStoppedAtOnce(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := interrupted(t, k)
		began := time.Now()
		took := time.Duration(0)
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{MaxLag: 4711}, func(redrive.Event) {
			if took == 0 {
				took = time.Since(began)
			}
		}), redrive.IfSilent())
		if err != nil || o.Counts.Succeeded != 20 || took > 2*time.Second {
			t.Errorf("the run went on after %v and ended with %v, and %+v", took, err, o)
		}
		runs, err := r.Runs(t.Context(), "orders.dlq")
		if err != nil || len(runs[0].Resumed) != 1 || runs[0].Resumed[0].Owner != runs[0].Owner || runs[0].Resumed[0].At.Before(began) {
			t.Errorf("the record does not say who resumed it: %+v, %v", runs, err)
		}
		if got := runs[0].Resumed[0].Changed; len(got) != 1 || got[0].Field != "maxLag" || got[0].To != "4711" || got[0].From == "" {
			t.Errorf("the record says that %+v was changed, want maxLag to 4711", got)
		}
	})
}

// A process whose clock is an hour behind looks as if it had died long ago, and one whose clock is
// an hour ahead as if it lived. One that died looks the same. On a slow connection heartbeats come
// more seldom.
func TestResume_ListensWhateverTheClocksSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wrong   time.Duration // the clock of the other process
		timeout time.Duration // of its transactions
		every   time.Duration // it sends a heartbeat; zero if it died
		want    string
	}{
		"behind, of one that lives":              {wrong: -time.Hour, every: 5 * time.Second, want: "is running: a heartbeat of bob came just now, and is 1h0m"},
		"behind, of one that died":               {wrong: -time.Hour},
		"ahead, of one that lives":               {wrong: time.Hour, every: 5 * time.Second, want: "is running: a heartbeat of bob came just now, and is 59m58s ahead"},
		"ahead, of one that lives and is slow":   {wrong: time.Hour, timeout: 10 * time.Second, every: 25 * time.Second, want: "is running: a heartbeat of bob came just now, and is 59m"},
		"ahead, of one that died":                {wrong: time.Hour},
		"ahead, of one that was slow and died":   {wrong: time.Hour, timeout: 10 * time.Second},
		"somewhat ahead, of one that lives":      {wrong: 5 * time.Second, every: 5 * time.Second, want: "is running: the last heartbeat of bob was 0s ago"},
		"somewhat ahead, of one that just lived": {wrong: 5 * time.Second, want: "is running: the last heartbeat of bob was 0s ago"},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			r, p := interrupted(t, k)
			beat := func() {
				asWritten(t, k, p.ID, map[string]any{"at": time.Now().Add(c.wrong), "token": "colleague", "owner": "bob", "timeout": c.timeout})
			}
			beat()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for c.every > 0 && ctx.Err() == nil {
					select {
					case <-ctx.Done():
					case <-time.After(c.every):
						beat()
					}
				}
			}()
			o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfSilent())
			stop()
			<-done
			if c.want != "" {
				_ = heldError(t, err, c.want)
			} else {
				succeeds(t, 20)(o, err)
			}
		})
	}
}

// Another operator takes the run between the check and the claim. The ledger as the claim reads it
// counts.
func TestResume_ChecksAgainAsItClaims(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := interrupted(t, k)
		before := readLedger(t, k).Runs()[p.ID]
		var once sync.Once
		k.Cluster.ControlKey(int16(kmsg.InitProducerID), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if kreq.(*kmsg.InitProducerIDRequest).TransactionalID != nil {
				k.Cluster.SleepControl(func() {
					once.Do(func() { asWritten(t, k, p.ID, map[string]any{"token": "colleague", "owner": "bob", "at": time.Now()}) })
				})
			}
			return nil, nil, false
		})
		_, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfSilent())
		if held := heldError(t, err, "the last heartbeat of bob"); held.Run.Claim != "colleague" {
			t.Errorf("it says that %+v has the run", held.Run)
		}
		var rec struct{ Token string }
		if after := readLedger(t, k).Runs()[p.ID]; json.Unmarshal(after, &rec) != nil || rec.Token != "colleague" {
			t.Errorf("the run was %s, and is %s", before, after)
		}
	})
}

// If the ledger cannot be read in time, the state is not known.
func TestResume_TakesNothingWhereItCannotLook(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := interrupted(t, k)
		asWritten(t, k, p.ID, map[string]any{"at": time.Now().Add(-time.Hour)})
		ended := heldUp(t, k, "orders.dlq.ledger", 5*time.Second)
		_, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfSilent())
		_ = heldError(t, err, "may be running: the last heartbeat of ann on ")
		<-ended
		succeeds(t, 20)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil), redrive.IfSilent()))
	})
}
