package redrive_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

func TestOutcomes_OfLettersInRetryTopicsArePending(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var mu sync.Mutex
		tried := map[int64]bool{}
		letters(t, k, 20, func(_ context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if !tried[r.Offset] {
				tried[r.Offset] = true
				return errBusy
			}
			return nil
		})
		r := redriver(t, k)
		retrying := int64(0)
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1, Window: 3 * time.Minute, TolerateShare: 1}, func(e redrive.Event) {
			if retrying = max(retrying, e.Counts.Retrying); e.Counts.Retrying > e.Counts.Pending {
				t.Errorf("%+v", e.Counts)
			}
		})
		if c := o.Counts; err != nil || c.Succeeded != 20 || retrying != 20 {
			t.Errorf("the run ended with %v, and %+v; %d were seen to wait", err, o, retrying)
		}
	})
}

// The exit code goes by it.
func TestRun_ThatEndsBeforeARetryIsDueCountsItAsRetrying(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, func(context.Context, *kgo.Record) error {
			return errBusy
		})
		r := redriver(t, k)
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1, Ramp: -1, Window: 2 * time.Second, TolerateShare: 1}, nil)
		if c := o.Counts; err != nil || o.State != redrive.Done || c.Pending != 20 || c.Retrying != 20 || c.Failed != 0 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

// Were the topics' ends read before the group's offsets, the failure between the two would be seen by neither: the watch, which reads all
// the time, is slow here.
func TestOutcomes_SeeAFailureDuringAPoll(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		s := letters(t, k, 1, func(context.Context, *kgo.Record) error {
			<-release
			return classify.Terminal(classify.As(errors.New("no"), "other"))
		})
		committed := func() bool { return k.Cluster.GroupInfo("billing").Commits["orders.retry.5s"][0].Offset > 0 }
		var slow atomic.Int64 // until then
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Count: -1, When: func(req kmsg.Request) bool {
			return req.(*kmsg.FetchRequest).IsolationLevel == 0 && time.Now().UnixNano() < slow.Load()
		}})
		var once sync.Once
		k.Cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if g := req.(*kmsg.OffsetFetchRequest).Groups[0]; g.MemberID != nil || s.consumer.Health().Lanes[0].Running == 0 {
				return nil, nil, false
			}
			once.Do(func() {
				k.Cluster.SleepControl(func() {
					slow.Store(time.Now().Add(5 * time.Second).UnixNano())
					close(release)
					for !committed() {
						time.Sleep(10 * time.Millisecond)
					}
				})
			})
			return nil, nil, false
		})
		r := redriver(t, k)
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1}, nil)
		if c := o.Counts; err != nil || c.Succeeded != 0 || c.Failed != 1 || c.FailedByClass["other"] != 1 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

// Somebody sets the group's offset past what was brought back, while its consumer is stopped: nobody ran it.
func TestOutcomes_BehindAnOffsetThatWasSetAreUnknown(t *testing.T) {
	t.Parallel()
	const looks = 3 * time.Second
	for name, set := range map[string]func(*testing.T, *consumertest.Kafka){
		"between two looks": func(*testing.T, *consumertest.Kafka) {},
		"a while later":     func(*testing.T, *consumertest.Kafka) { time.Sleep(looks) },
		"after the group was deleted": func(t *testing.T, k *consumertest.Kafka) {
			time.Sleep(looks)
			forgetGroup(t, k)
			time.Sleep(looks)
		},
		"as the group was deleted": forgetGroup,
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			stop := make(chan struct{})
			s := letters(t, k, 20, blocked)
			r, p := planned(t, k)
			var once sync.Once
			go func() {
				<-stop
				s.stop(t)
				set(t, k)
				setOffset(t, k, "orders.retry.5s", 1000)
			}()
			o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1}, func(e redrive.Event) {
				if e.State == redrive.Watching {
					once.Do(func() { close(stop) })
				}
			})
			if c := o.Counts; err != nil || c.Unknown != 20 || c.Succeeded != 0 {
				t.Errorf("the run ended with %v, and %+v", err, o)
			}
			again, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Wait: true}})
			if err != nil || again.Letters != 20 {
				t.Errorf("letters without a known outcome are to be open; a new plan has %v, %v", again, err)
			}
		})
	}
}

// A service that is deployed anew commits what it did, and is gone before the next look.
func TestOutcomes_BelieveTheLastCommitOfAConsumer(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		s := letters(t, k, 20, func(context.Context, *kgo.Record) error { <-release; return nil })
		r, p := planned(t, k)
		stop := make(chan struct{})
		var once sync.Once
		go func() {
			<-stop
			go close(release)
			s.stop(t)
		}()
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1}, func(e redrive.Event) {
			if e.State == redrive.Watching {
				once.Do(func() { close(stop) })
			}
		})
		if c := o.Counts; err != nil || c.Succeeded == 0 || c.Unknown != 0 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

// forgetGroup deletes the group, and with it what it had committed.
func forgetGroup(t *testing.T, k *consumertest.Kafka) {
	t.Helper()
	adm := kadm.NewClient(clientOf(t, k))
	if deleted, err := adm.DeleteGroups(t.Context(), "billing"); err != nil || deleted.Error() != nil {
		t.Errorf("delete the group: %v, %v", err, deleted.Error())
	}
}

// The engine is stopped after it sent, what it sent fails, and only then it is resumed.
func TestWatch_SeesFailuresWhileNoEngineRan(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 20, func(context.Context, *kgo.Record) error {
			<-release
			return classify.Terminal(classify.As(errors.New("no"), "tax"))
		})
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1}, 20)
		close(release)
		time.Sleep(time.Minute)
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, nil)
		reappeared(t, o, err, "failed again with tax")
		if c := o.Counts; c.Succeeded != 0 {
			t.Errorf("the counts are %+v", c)
		}
	})
}

func TestEngine_WaitsForTheCanary(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 20, func(ctx context.Context, r *kgo.Record) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return nil
			}
		})
		r := redriver(t, k)
		began := time.Now()
		var waited time.Duration
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{}, func(e redrive.Event) {
			if e.State == redrive.Waiting && waited == 0 {
				waited = time.Since(began)
				if e.Counts.Sent != 1 || !strings.Contains(e.Waiting, "canary") {
					t.Errorf("%+v", e)
				}
				close(release)
			}
		})
		if err != nil || o.Counts.Succeeded != 20 || waited < 5*time.Minute || waited > 5*time.Minute+2*time.Second {
			t.Errorf("the run ended with %v, and %+v; it waited after %v", err, o, waited)
		}
	})
}

func TestEngine_WaitsWhileTheGroupIsBehind(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var slow atomic.Bool
		slow.Store(true)
		letters(t, k, 100, func(ctx context.Context, r *kgo.Record) error {
			if slow.Load() {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		r := redriver(t, k)
		behind, most := 0, int64(0)
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1, Ramp: -1, MaxLag: 10}, func(e redrive.Event) {
			most = max(most, e.Counts.Pending)
			if strings.Contains(e.Waiting, "behind") {
				if behind++; behind == 20 {
					slow.Store(false)
				}
			}
		})
		if err != nil || o.Counts.Succeeded != 100 || behind < 20 || most > 10+8 {
			t.Errorf("the run ended with %v, and %+v; it was behind %d times, with up to %d", err, o, behind, most)
		}
	})
}

func TestAlarm_FiresWhenTheTopicFillsFaster(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 500, "sku")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r, p := planned(t, k)
		stopped := make(chan struct{})
		go func() { // 10 a second of another class, where 5 are brought back
			defer close(stopped)
			for ctx.Err() == nil {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku:new")})
				time.Sleep(100 * time.Millisecond)
			}
		}()
		began := time.Now()
		o, err := r.Run(t.Context(), p, redrive.Pace{Rate: 5, Canary: -1, Ramp: -1}, nil)
		stop()
		<-stopped
		reappeared(t, o, err, "fills faster")
		if d := time.Since(began); d < 30*time.Second || d > 40*time.Second {
			t.Errorf("it took %v, want a window", d)
		}
	})
}

// The group's lag on a target that was named is read after the outcomes, and that can fail by itself.
func TestEngine_RecordsVerdictsOfAPollThatFailed(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		var fault *kfake.FaultHandle
		began := time.Now()
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1, Ramp: -1}, func(redrive.Event) {
			switch {
			case fault == nil:
				fault = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Err: kerr.UnknownServerError, Count: -1})
			case time.Since(began) > 5*time.Second:
				fault.Remove()
			}
		})
		if err != nil || o.Counts.Succeeded != 20 || fault.Hits() == 0 {
			t.Errorf("the run ended with %v, and %+v; %d readings failed", err, o, fault.Hits())
		}
		got := map[dlq.State]int{}
		for l, err := range ledgerOf(k).Letters(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.WithResolved) {
			if err != nil {
				t.Fatal(err)
			}
			got[l.State]++
		}
		if got[dlq.Succeeded] != 20 {
			t.Errorf("the ledger says %v", got)
		}
	})
}

// A run that waits for its group brings nothing back meanwhile, and so drains nothing.
func TestAlarm_StaysSilentWhileTheRunIsHeldBack(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var slow atomic.Bool
		slow.Store(true)
		letters(t, k, 200, func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "sku" {
				return failing("sku")(ctx, r)
			}
			if slow.Load() {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		r, p := planned(t, k)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stopped := make(chan struct{})
		go func() { // a letter every two seconds, of another class: 15 within a window, in which the group runs three
			defer close(stopped)
			for ctx.Err() == nil {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku")})
				time.Sleep(2 * time.Second)
			}
		}()
		began, behind := time.Now(), 0
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1, Ramp: -1, MaxLag: 50}, func(e redrive.Event) {
			if strings.Contains(e.Waiting, "behind") {
				behind++
			}
			if slow.Load() && time.Since(began) > 2*time.Minute {
				slow.Store(false)
			}
		})
		stop()
		<-stopped
		if c := o.Counts; err != nil || c.Succeeded != 200 || behind == 0 {
			t.Errorf("the run ended with %v, and %+v; it waited %d times", err, o, behind)
		}
	})
}
