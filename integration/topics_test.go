package integration_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// A cluster of a platform has hundreds of dead-letter topics. Reading one after the other took
// `redrive topics` 78 ms each, 15.6 s for 200: too long for a first look at an incident.
//
// How long the program takes depends on the machine, too: -v prints it. What it depends on by
// itself are its requests, which the embedded broker counts: one after the other the topics take
// some each.
func TestTopics_ManyAreReadSoon(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]func(*testing.T) *site{"embedded": onEmbedded, "kafka": onKafka} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const topics, letters = 200, 20
			s := on(t)
			source := func(i int) string { return fmt.Sprintf("many-%03d", i) }
			var dead, ledgers []string
			for i := range topics {
				dead, ledgers = append(dead, source(i)+".dlq"), append(ledgers, source(i)+".dlq.ledger")
			}
			compacted := "compact"
			for _, create := range []struct {
				topics  []string
				configs map[string]*string
			}{{dead, nil}, {ledgers, map[string]*string{"cleanup.policy": &compacted}}} {
				made, err := s.admin.CreateTopics(t.Context(), 1, 1, create.configs, create.topics...)
				must(t, errors.Join(err, made.Error()))
			}
			var records []*kgo.Record
			for i := range topics {
				for n := range letters {
					m := headers.Meta{
						Original: headers.Position{Topic: source(i), Offset: int64(n)}, Group: "billing", Class: fmt.Sprintf("class-%d", n%3),
						Reason: headers.ReasonTerminal, FailedAt: time.Now(), Message: "no",
					}
					records = append(records, &kgo.Record{Topic: dead[i], Value: []byte("{}"), Headers: m.Append(nil)})
				}
				e := dlq.Entry{State: dlq.Discarded, At: time.Now(), By: "ada"}
				records = append(records, e.Record(ledgers[i], 0, 0))
			}
			cl := client(t, s, kgo.MaxBufferedRecords(len(records)), kgo.UnknownTopicRetries(-1))
			must(t, cl.ProduceSync(t.Context(), records...).FirstErr())

			var fetches atomic.Int64
			if s.Cluster != nil {
				s.Cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
					s.Cluster.KeepControl()
					fetches.Add(1)
					return nil, nil, false
				})
			}
			binary(t) // building it takes time, too
			began := time.Now()
			rows := s.rows("topics", "--filter", "many-*")
			t.Logf("redrive topics took %v and %d fetches for %d topics", time.Since(began).Round(time.Millisecond), fetches.Load(), len(rows))
			for _, r := range rows {
				if len(rows) != topics || r.number("open") != letters-1 || r.number("resolved") != 1 {
					t.Fatalf("%d rows: %+v", len(rows), r)
				}
			}
			if n := fetches.Load(); s.Cluster != nil && (n == 0 || n > topics) {
				t.Errorf("%d topics took %d fetches, want less than one each", topics, n)
			}
		})
	}
}
