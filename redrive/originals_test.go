package redrive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive"
)

// without makes, of n letters, others that lack their values, and a plan of these.
func without(t *testing.T, k *consumertest.Kafka, n int) (*redrive.Redriver, *redrive.Plan) {
	t.Helper()
	k.CreateTopic("orders", 1)
	s := newService("tax")
	incident(k, s.config(), n, "tax")
	s.has()
	was := on(t, k, "orders.dlq")
	slices.Reverse(was) // the originals are read in no order
	for i, l := range was {
		m := metaOf(t, l)
		m.ValueOmitted = true
		m.Redrive = headers.Redrive{ID: "r0", Count: 1, From: headers.Position{Topic: "orders.dlq", Offset: int64(9_000 + i)}}
		k.Produce(&kgo.Record{Topic: "orders.dlq", Headers: m.Append(nil)})
	}
	r := redriver(t, k)
	return r, planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{{From: int64(n)}}}})
}

// Each original was read by its own client.
func TestOriginals_ReadWithOneClient(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const n = 200
		r, p := without(t, k, n)
		connections := 0
		k.Cluster.ControlKey(int16(kmsg.ApiVersions), func(kmsg.Request) (kmsg.Response, error, bool) {
			connections++
			return nil, nil, false
		})
		began := time.Now()
		succeeds(t, n)(r.Run(t.Context(), p, ann(redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, Window: 2 * time.Second}, nil)))
		if took := time.Since(began); took > 5*time.Second || connections > n {
			t.Errorf("it took %v and %d connections", took, connections)
		}
		for i, c := range on(t, k, "orders.retry.5s") {
			m := metaOf(t, c)
			if want := fmt.Sprint("tax:", n-1-i); string(c.Value) != want || m.Original.Offset != int64(n-1-i) {
				t.Errorf("copy %d of %v has the value %q", i, m.Original, c.Value)
			}
		}
	})
}

// The run asked the broker again and again, and never ended.
func TestOriginals_WithoutPermissionEndTheRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := without(t, k, 1)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Err: kerr.TopicAuthorizationFailed, Count: -1, When: func(req kmsg.Request) bool {
			return req.(*kmsg.FetchRequest).IsolationLevel == 0 // the consumer goes on
		}})
		o, err := r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{Canary: -1, Window: time.Second}, nil))
		if lacks(t, err, "READ", "topic", "orders"); o.Stopped.IsZero() {
			t.Errorf("the outcome is %+v", o)
		}
	})
}

// The source has no leader for a while.
func TestOriginals_AreReadAgainAfterAnError(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := without(t, k, 20)
		f := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Err: kerr.UnknownServerError, Count: 3})
		succeeds(t, 20)(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: 2 * time.Second}, nil)))
		if f.Hits() == 0 {
			t.Error("there was no fault")
		}
	})
}

// The letter was not sent, since its record was gone from the source, and it hid the copy that had
// the value. So the record was never redriven.
func TestOriginals_ThatAreGoneAreReadFromCopies(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		s := newService("tax")
		incident(k, s.config(), 3, "tax")
		s.has()
		for i, l := range on(t, k, "orders.dlq") {
			m := metaOf(t, l)
			m.Original.TopicID = [16]byte{1} // of a topic that was deleted
			for _, omitted := range [][]bool{{true, true, false, false}, {true, true}, {true}}[i] {
				value := l.Value
				if m.ValueOmitted = omitted; omitted {
					value = nil
				}
				k.Produce(&kgo.Record{Topic: "orders.dlq", Value: value, Headers: m.Append(nil)})
			}
		}
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{{From: 3}}}})
		ends(t, redrive.Counts{Succeeded: 1, Skipped: map[string]int64{redrive.SkippedValueLost: 2}})(
			r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second}, nil)))
		for _, c := range on(t, k, "orders.retry.5s") {
			if m := metaOf(t, c); string(c.Value) != "tax:0" || m.Redrive.From.Offset != 3 {
				t.Errorf("the copy of %v has the value %q", m.Redrive.From, c.Value)
			}
		}
		// Three letters before them are open, two whose value is in no other letter, and a copy of
		// one of those is hidden by it.
		if got := states(t, k); got[dlq.Succeeded] != 1 || got[dlq.Duplicate] != 3+1 || got[""] != 3+2 {
			t.Errorf("the ledger says %v", got)
		}
	})
}

// The broker was asked for the record of a topic without a name, again and again.
func TestOriginals_ALetterWithoutValueAndOriginStays(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 1, nil)
		k.CreateTopic("replay", 1)
		omitted := kgo.RecordHeader{Key: reserved.ValueOmitted.String(), Value: []byte("true")}
		k.Produce(&kgo.Record{Topic: "orders.dlq", Headers: []kgo.RecordHeader{omitted}})
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "replay"}, Filter: groupless})
		ends(t, redrive.Counts{Skipped: map[string]int64{redrive.SkippedValueLost: 1}})(
			r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{Canary: -1, Ramp: -1}, nil)))
	})
}
