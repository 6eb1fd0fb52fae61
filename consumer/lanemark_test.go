package consumer_test

import (
	"context"
	"errors"
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
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
)

// laneSaid returns what the last commit of a partition says of its lane.
func laneSaid(k *consumertest.Kafka, partition int32) commitmark.Lane {
	said := k.Cluster.GroupInfo("billing").Commits["orders"][partition]
	return commitmark.ParseLane(said.Metadata, said.Offset)
}

// A lane that cannot write a letter says so in its commits within seconds, without a record that
// finishes: since when, and what it lacks. When it can, they say that, and only of its partition.
func TestLaneMark_SaysWhatALaneLacks(t *testing.T) {
	each(t, map[string]struct {
		err  *kerr.Error
		says commitmark.LaneState
	}{
		"a permission": {kerr.TopicAuthorizationFailed, commitmark.Denied},
		"a policy":     {kerr.PolicyViolation, commitmark.Refused},
	}, 2, func(t *testing.T, k *consumertest.Kafka, tt struct {
		err  *kerr.Error
		says commitmark.LaneState
	},
	) {
		cfg := config(sortOfBad)
		cfg.Version = "2.3.1"
		c := k.Run(cfg)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: tt.err})
		failing := k.Produce(onPartition(1, "bad", 5)...)
		began := time.Now()
		time.Sleep(8 * time.Second)
		l := laneSaid(k, 1)
		if l.State != tt.says || l.Since.Sub(began).Abs() > 2*time.Second || l.Release != "2.3.1" {
			t.Errorf("after 8 s the commit says %+v", l)
		}
		time.Sleep(10 * time.Minute)
		if again := laneSaid(k, 1); again != l {
			t.Errorf("later it says %+v", again)
		}
		if l := laneSaid(k, 0); l != (commitmark.Lane{Release: "2.3.1"}) {
			t.Errorf("the other partition's says %+v", l)
		}
		fault.Remove()
		k.DeadLettered(failing[0], headers.ReasonTerminal)
		time.Sleep(8 * time.Second)
		if l := laneSaid(k, 1); l != (commitmark.Lane{Release: "2.3.1"}) {
			t.Errorf("at the end the commit says %+v", l)
		}
		stop(t, c)
	})
}

// A commit says that a lane halted, within seconds. It says so no more once the process that
// stopped has ended, or paused topics, or an owner came that runs.
func TestLaneMark_SaysThatALaneHalted(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		stops := true
		cfg := config(func(context.Context, *kgo.Record) error {
			if stops {
				return classify.Terminal(errors.New("no such SKU"))
			}
			return nil
		})
		cfg.Policy.OnTerminal = consumer.Stop
		c := k.Run(cfg)
		k.Produce(&kgo.Record{Topic: "orders"})
		time.Sleep(8 * time.Second)
		if l := laneSaid(k, 0); l.State != commitmark.Stopped || time.Since(l.Since) < 7*time.Second {
			t.Errorf("the commit says %+v", l)
		}
		stop(t, c)
		if l := laneSaid(k, 0); l != (commitmark.Lane{}) {
			t.Errorf("of a process that has ended, the commit says %+v", l)
		}
		stops = false
		c = k.Run(cfg)
		time.Sleep(time.Second)
		c.Pause("orders")
		time.Sleep(8 * time.Second)
		if l := laneSaid(k, 0); l != (commitmark.Lane{State: commitmark.Paused}) {
			t.Errorf("of a topic that is paused, the commit says %+v", l)
		}
		c.Resume("orders")
		time.Sleep(8 * time.Second)
		if l := laneSaid(k, 0); l != (commitmark.Lane{}) {
			t.Errorf("of a topic that is not, the commit says %+v", l)
		}
	})
}

// Of a process that was killed, what it said last stands until the next owner's first commit,
// though no record finishes. So does its release.
func TestLaneMark_IsOfTheOwner(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		said := commitmark.Lane{State: commitmark.Stuck, Since: time.Now(), OpenSince: time.Now(), Release: "1"}
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			at := kadm.Offsets{}
			at.Add(kadm.Offset{Topic: "orders", LeaderEpoch: -1, Metadata: commitmark.Mark + " 1 f=0" + said.Field()})
			return cl.CommitAllOffsets(ctx, "billing", at)
		})
		k.Run(config(handle)) // of an unknown release
		eventually(t, "the next owner's commit", func() bool { return laneSaid(k, 0) == commitmark.Lane{} })
	})
}
