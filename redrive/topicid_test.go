package redrive_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// remake recreates the dead-letter topic, and writes n other letters to it.
func remake(t *testing.T, k *consumertest.Kafka, s *switched, n int) {
	t.Helper()
	k.DeleteTopic("orders.dlq")
	k.CreateTopic("orders.dlq", 1)
	s.set(failing("new"))
	// a letter that was refused at first may come last
	for _, r := range k.Produce(records(n, "new")...) {
		k.DeadLettered(r, "terminal")
	}
}

// nothingNew checks that no letter of the recreated topic was sent, and that all of them are open.
func nothingNew(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver, n int64) {
	t.Helper()
	for _, c := range on(t, k, "orders.retry.5s") {
		if string(c.Value) == "new" {
			t.Fatalf("a letter was sent that was not selected: %d", c.Offset)
		}
	}
	if p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err != nil || p.Letters != n {
		t.Errorf("a new plan: %v, %+v; want that it has the %d new letters", err, p, n)
	}
}

func TestTopicID_ARunOfARecreatedTopicAborts(t *testing.T) {
	t.Parallel()
	for name, pace := range map[string]redrive.Pace{
		"while letters are read":  {Rate: 10, Canary: -1, Ramp: -1},
		"while all is sent":       {Canary: -1, Ramp: -1, Rate: -1, Window: time.Hour},
		"while the canary's away": {},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 1500, blocked)
			r, p := planned(t, k)
			result := make(chan error)
			var o redrive.Outcome
			go func() {
				var err error
				o, err = r.Run(within(t, 10*time.Minute), p, ann(pace, nil))
				result <- err
			}()
			time.Sleep(5 * time.Second)
			k.DeleteTopic("orders.dlq")
			k.CreateTopic("orders.dlq", 1)
			err := <-result
			if !errors.Is(err, redrive.ErrTopicRecreated) || o.State != redrive.Aborted || o.Counts.Succeeded != 0 || o.Counts.Sent == 0 || o.Counts.Skipped["expired"] != 0 {
				t.Errorf("the run ended with %v, and %+v", err, o)
			}
			now, err := r.Status(t.Context(), "orders.dlq", p.ID)
			if err != nil || now.Counts.Sent != o.Counts.Sent || now.Counts.Pending != o.Counts.Sent {
				t.Errorf("later it is %+v, %v", now, err)
			}
		})
	}
}

// The letters of the new topic have the offsets that were selected from the old one.
func TestSource_EndsWhenTheTopicIsRecreated(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 1, nil)
		var records []*kgo.Record // more than is read ahead
		for range 6000 {
			records = append(records, &kgo.Record{Topic: "orders", Value: incompressible()})
		}
		k.DeadLettered(k.Produce(records...)[5999], "terminal")
		s.set(succeeding)
		r := redriver(t, k, kgo.FetchMaxPartitionBytes(256<<10))
		p := plan(t, r)
		others := on(t, k, "orders.dlq")
		for _, l := range others {
			*l = kgo.Record{Topic: "orders.dlq", Key: l.Key, Value: []byte("new"), Headers: l.Headers}
		}
		result := make(chan error)
		go func() {
			_, err := r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{Rate: 50, Canary: -1, Ramp: -1, MaxLag: -1}, nil))
			result <- err
		}()
		time.Sleep(5 * time.Second)
		looks := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
		defer looks.Remove()
		k.DeleteTopic("orders.dlq")
		k.CreateTopic("orders.dlq", 1)
		k.Produce(others...)
		if err := <-result; !errors.Is(err, redrive.ErrTopicRecreated) {
			t.Errorf("the run ended with %v", err)
		}
		looks.Remove()
		nothingNew(t, k, r, int64(len(others)))
	})
}

// A run that has just lost its transaction cannot record that it aborts: then it ends.
func TestTopicID_ARunOfADeletedTopicEnds(t *testing.T) {
	t.Parallel()
	for name, unanswered := range map[string]bool{"while it sends": false, "at a commit without an answer": true} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 1500, succeeding)
			r, p := planned(t, k)
			deleted := time.Now()
			o, err := r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{Rate: 10, Canary: -1, Ramp: -1}, first(sentOver(50), func() {
				deleted = time.Now()
				k.DeleteTopic("orders.dlq")
				if unanswered {
					k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1})
				}
			})))
			if took := time.Since(deleted); !errors.Is(err, redrive.ErrTopicRecreated) || took < 10*time.Second || took > 40*time.Second {
				t.Errorf("after %v the run ended with %v", took, err)
			}
			if aborted := o.State == redrive.Aborted; aborted == unanswered {
				t.Errorf("the run is %s", o.State)
			}
		})
	}
}

func TestTopicID_ARunOfARecreatedTopicIsNotResumed(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 100, succeeding)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Rate: 10, Ramp: -1}, 21)
		sent := len(on(t, k, "orders.retry.5s"))
		remake(t, k, s, 200)
		if _, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)); !errors.Is(err, redrive.ErrTopicRecreated) || !strings.Contains(err.Error(), "abort it") {
			t.Errorf("it is resumed with %v", err)
		}
		if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.Counts.Sent != int64(sent) || o.Counts.Failed != 0 {
			t.Errorf("it is %+v, %v; want %d sent, as it was written down", o, err, sent)
		}
		if _, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err == nil {
			t.Error("another run was planned beside it")
		}
		if err := r.Abort(t.Context(), "orders.dlq", p.ID, byAnn); err != nil {
			t.Fatal(err)
		}
		nothingNew(t, k, r, 200)
	})
}

// The redriven letters were deleted with the topic. The engine that had the run knew that, but
// later processes did not.
func TestTopicID_LettersInARecreatedTierAreUnknown(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 20, blocked)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Ramp: -1}, 20)
		s.stop(t)
		k.DeleteTopic("orders.retry.5s")
		k.CreateTopic("orders.retry.5s", 1)
		setOffset(t, k, "orders.retry.5s", 50) // of records that came to the new one
		if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.Counts.Succeeded != 0 || o.Counts.Unknown != 20 {
			t.Errorf("it is %+v, %v", o, err)
		}
	})
}
