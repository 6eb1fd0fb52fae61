package integration_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

// A broker refuses whole batches. It then refuses the later batches of the transaction as well,
// since they are out of order.
func TestOnlyLettersThatABrokerWillNotTakeStay(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	v := s.deploy(topic, topic, time.Second)
	const n, large = 3_000, 3
	var records []*kgo.Record
	for i := range n {
		size := 500
		if i%(n/large) == 500 {
			size = 15_000
		}
		value := make([]byte, size)
		rand.Read(value) // never fails
		records = append(records, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: value})
	}
	s.Produce(records...)
	s.await("dead letters", func() bool { return s.count(topic+".dlq") >= n })
	v.fixed()
	limit := "10000"
	if _, err := s.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}}, topic+".retry.1s"); err != nil {
		t.Fatal(err)
	}
	r, err := redrive.New(redrive.Config{Kafka: s.Opts()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Plan(t.Context(), redrive.Selection{Topic: topic + ".dlq"})
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]bool{}
	o, err := r.Run(t.Context(), p, redrive.RunOptions{
		By: "ann", Pace: redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, MaxLag: -1, Window: 2 * time.Second},
		On: func(e redrive.Event) { messages[e.Message] = true },
	})
	if c := o.Counts; err != nil || c.Sent != n-large || c.Skipped[redrive.SkippedTooLarge] != large {
		t.Errorf("the run ended with %v, and %+v; it messages %v", err, o, messages)
	}
	s.onceEach(topic, topic+".retry.1s", n-large)
}
