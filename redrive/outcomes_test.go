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
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// If the topics' ends were read before the group's offsets, neither would see a failure between the
// two. The watch, which reads all the time, is slow here.
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
		ends(t, redrive.Counts{Failed: 1, FailedByClass: map[string]int64{"other": 1}})(r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1}, nil)))
	})
}

// An operator sets the group's offset past the redriven letters while the consumer is stopped: none
// of them ran.
func TestOutcomes_BehindAnOffsetThatWasSetAreUnknown(t *testing.T) {
	cases.Skip(t)
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
			go func() {
				<-stop
				s.stop(t)
				set(t, k)
				setOffset(t, k, "orders.retry.5s", 1000)
			}()
			ends(t, redrive.Counts{Unknown: 20})(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1}, first(watching, func() { close(stop) }))))
			again, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Wait: true}})
			if err != nil || again.Letters != 20 {
				t.Errorf("letters without a known outcome are to be open; a new plan has %v, %v", again, err)
			}
		})
	}
}

// A service that is redeployed commits its work, and is gone before the next poll.
func TestOutcomes_BelieveTheLastCommitOfAConsumer(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		s := letters(t, k, 20, func(context.Context, *kgo.Record) error { <-release; return nil })
		r, p := planned(t, k)
		stop := make(chan struct{})
		go func() {
			<-stop
			go close(release)
			s.stop(t)
		}()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1}, first(watching, func() { close(stop) })))
		if c := o.Counts; err != nil || c.Succeeded == 0 || c.Unknown != 0 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

// forgetGroup deletes the group and its committed offsets.
func forgetGroup(t *testing.T, k *consumertest.Kafka) {
	t.Helper()
	adm := kadm.NewClient(clientOf(t, k))
	if deleted, err := adm.DeleteGroups(t.Context(), "billing"); err != nil || deleted.Error() != nil {
		t.Errorf("delete the group: %v, %v", err, deleted.Error())
	}
}

// A stranger's open transaction on the retry topic hid the canary from its group. For five minutes
// the run said nothing, and then it asked whether the consumer was running.
func TestOutcomes_NameTheTransactionThatHidesTheCanary(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 3, succeeding)
		r, p := planned(t, k)
		stranger := clientOf(t, k, kgo.TransactionalID("stranger"), kgo.TransactionTimeout(10*time.Minute))
		if err := errors.Join(stranger.BeginTransaction(), stranger.ProduceSync(t.Context(), &kgo.Record{Topic: "orders.retry.5s", Value: []byte("x")}).FirstErr()); err != nil {
			t.Fatal(err)
		}
		began, named := time.Now(), time.Duration(0)
		succeeds(t, 3)(r.Run(within(t, 20*time.Minute), p, ann(redrive.Pace{}, first(func(e redrive.Event) bool {
			return strings.Contains(e.Waiting, "another producer's transaction, open since offset 0 of orders.retry.5s/0, hides letters")
		}, func() {
			named = time.Since(began)
			if err := stranger.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
				t.Error(err)
			}
		}))))
		if named == 0 || named > 10*time.Second {
			t.Errorf("the run named it after %v", named)
		}
	})
}
