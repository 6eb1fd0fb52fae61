package redrive_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// hidden makes 4 letters that were tried three times, and a redriver of ann. She has all
// permissions that a run needs, but cannot see the second retry topic. Redriven letters fail as
// before.
func hidden(t *testing.T, test func(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var rights []kfake.ACL
		for name, r := range map[string]struct {
			resource kmsg.ACLResourceType
			may      []kmsg.ACLOperation
		}{
			"orders.dlq":                  {kmsg.ACLResourceTypeTopic, []kmsg.ACLOperation{kmsg.ACLOperationRead}},
			"orders.dlq.ledger":           {kmsg.ACLResourceTypeTopic, []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite}},
			"orders.retry.5s":             {kmsg.ACLResourceTypeTopic, []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite}},
			"billing":                     {kmsg.ACLResourceTypeGroup, []kmsg.ACLOperation{kmsg.ACLOperationDescribe}},
			"siding-redrive-orders.dlq-a": {kmsg.ACLResourceTypeTransactionalId, []kmsg.ACLOperation{kmsg.ACLOperationWrite}},
			"siding-redrive-orders.dlq-b": {kmsg.ACLResourceTypeTransactionalId, []kmsg.ACLOperation{kmsg.ACLOperationWrite}},
		} {
			for _, op := range r.may {
				rights = append(rights, kfake.ACL{Resource: r.resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
			}
		}
		as := guarded(t, rights)
		k := consumertest.On(t, as("admin")...)
		k.CreateTopic("orders", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, time.Minute}},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				class := "busy"
				if f := consumer.DeliveryOf(ctx, r); f.Attempt == 3 {
					class = "tax"
				}
				return classify.Retryable(classify.As(errors.New("no"), class))
			},
		})
		written := k.Produce(records(4, "x")...)
		time.Sleep(70 * time.Second)
		for _, r := range written {
			k.DeadLettered(r, headers.ReasonExhausted)
		}
		r := redriverOf(t, redrive.Config{Kafka: as("ann")})
		test(t, k, r)
	})
}

// A letter that fails into a retry topic which the run cannot see seems to have succeeded. The
// status reports the failure once the record is a dead letter again.
func TestStatus_CountsLettersThatFailedUnseen(t *testing.T) {
	t.Parallel()
	hidden(t, func(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver) {
		p := plan(t, r)
		if want := []string{"orders.retry.5s"}; !slices.Equal(p.Watched, want) {
			t.Errorf("%q are watched, want %q", p.Watched, want)
		}
		if p := plan(t, redriver(t, k)); !slices.Equal(p.Watched, []string{"orders.retry.5s", "orders.retry.1m"}) {
			t.Errorf("a run of a user who sees all topics watches %q", p.Watched)
		}
		succeeds(t, 4)(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Window: 10 * time.Second}, nil)))
		if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.Counts.Succeeded != 4 {
			t.Errorf("before anything is known it is %+v, %v", o, err)
		}
		time.Sleep(5 * time.Minute) // it fails twice more, a minute each
		for range 2 {
			o, err := r.Status(t.Context(), "orders.dlq", p.ID)
			if c := o.Counts; err != nil || c.Sent != 4 || c.Succeeded != 0 || c.Failed != 4 || c.FailedByClass["tax"] != 4 || o.State != redrive.Done {
				t.Errorf("it is %+v, %v", o, err)
			}
		}
	})
}

// To report, without a check, that all succeeded would be the one wrong answer.
func TestStatus_NeedsToReadDeadLetters(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 3, succeeding)
		r, p := planned(t, k)
		succeeds(t, 3)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		k.Produce(&kgo.Record{Topic: "orders.dlq"}) // there is something to be read
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
		_, err := r.Status(t.Context(), "orders.dlq", p.ID)
		lacks(t, err, "READ", "topic", "orders.dlq")
	})
}
