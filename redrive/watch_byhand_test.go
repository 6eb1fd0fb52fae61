package redrive_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive"
)

// byHand is a member of the group that does the steps of a consumer one by one, when the test calls
// them.
type byHand struct {
	t  *testing.T
	cl *kgo.Client
}

// takeOver joins the group in place of its consumer.
func takeOver(t *testing.T, k *consumertest.Kafka, s *switched) *byHand {
	t.Helper()
	s.stop(t)
	joined := make(chan struct{})
	var once sync.Once
	cl := clientOf(t, k, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { once.Do(func() { close(joined) }) }))
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() {
		for ctx.Err() == nil {
			cl.PollFetches(ctx)
		}
	}()
	<-joined
	return &byHand{t, cl}
}

// commit commits the group's offset on a retry topic.
func (h *byHand) commit(topic string, at int64) {
	h.t.Helper()
	member, generation := h.cl.GroupMetadata()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = "billing", member, generation
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = at
	of := kmsg.NewOffsetCommitRequestTopic()
	topics, err := kadm.NewClient(h.cl).ListTopics(h.t.Context(), topic)
	if err != nil {
		h.t.Error(err)
	}
	of.Topic, of.TopicID, of.Partitions = topic, topics[topic].ID, append(of.Partitions, p)
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(h.t.Context(), h.cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		h.t.Errorf("commit: %v", err)
	}
}

// write writes a copy.
func (h *byHand) write(topic string, m headers.Meta) {
	h.t.Helper()
	if err := h.cl.ProduceSync(h.t.Context(), &kgo.Record{Topic: topic, Value: []byte("x"), Headers: m.Append(nil)}).FirstErr(); err != nil {
		h.t.Error(err)
	}
}

// A letter that waits behind its key's head has been passed, and has neither run nor failed.
func TestWatch_AHeldLetterIsPendingUntilItRan(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		h := takeOver(t, k, letters(t, k, 1, nil))
		r, p := planned(t, k)
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(5 * time.Second)
			m := metaOf(t, on(t, k, "orders.retry.5s")[0])
			m.Held, m.Hops, m.NotBefore = true, 2, time.Now().Add(30*time.Second)
			h.write("orders.retry.30s", m)
			h.commit("orders.retry.5s", 2)
			time.Sleep(10 * time.Second)
			if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.Counts.Pending != 1 || o.Counts.Retrying != 0 {
				t.Errorf("while it is held: %+v, %v", o, err)
			}
			m.Hops++
			h.write("orders.retry.30s", m) // once more
			h.commit("orders.retry.30s", 1)
			time.Sleep(10 * time.Second)
			if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.Counts.Pending != 1 {
				t.Errorf("while it is held again: %+v, %v", o, err)
			}
			h.commit("orders.retry.30s", 2)
		}()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		<-done
		succeeds(t, 1)(o, err)
	})
}

// A copy that a consumer finds malformed becomes a dead letter with unchanged headers: those of a
// letter that has not run.
func TestWatch_ALetterWithBrokenHeadersHasFailed(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string][]kgo.RecordHeader{
		"out of bounds": nil,
		"broken":        {{Key: reserved.FirstFailedAt.String(), Value: []byte("yesterday")}},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			h := takeOver(t, k, letters(t, k, 1, nil))
			r, p := planned(t, k)
			done := make(chan struct{})
			go func() {
				defer close(done)
				time.Sleep(5 * time.Second)
				found := headers.Malformed(append(on(t, k, "orders.retry.5s")[0].Headers, broken...), errors.New("out of bounds"), time.Now())
				if err := h.cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders.dlq", Value: []byte("x"), Headers: found}).FirstErr(); err != nil {
					t.Error(err)
				}
				h.commit("orders.retry.5s", 2)
			}()
			o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
			<-done
			abortedAgain(t, o, err, "")
			if c := o.Counts; c.Succeeded != 0 || c.Failed != 1 {
				t.Errorf("the run says %+v", c)
			}
		})
	}
}
