package redrive_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// mixture is a dead-letter topic with all kinds of letters that real ones have.
type mixture struct {
	*testing.T
	k    *consumertest.Kafka
	adm  *kadm.Client
	cl   *kgo.Client // writes to the partition that a record names
	kind map[[2]int64]string
}

func newMixture(t *testing.T, k *consumertest.Kafka) *mixture {
	t.Helper()
	cl := clientOf(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return &mixture{T: t, k: k, cl: cl, adm: kadm.NewClient(cl), kind: map[[2]int64]string{}}
}

// put writes dead letters of a kind.
func (m *mixture) put(kind string, letters ...*kgo.Record) {
	m.Helper()
	for _, l := range letters {
		l.Topic = "orders.dlq"
		if err := m.cl.ProduceSync(m.Context(), l).FirstErr(); err != nil {
			m.Fatal(err)
		}
		m.kind[[2]int64{int64(l.Partition), l.Offset}] = kind
	}
}

// meta is what the headers of a letter of a record of the source say.
func meta(partition int32, offset int64) headers.Meta {
	now := time.Now()
	return headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: partition, Offset: offset, Timestamp: now}, Group: "billing", Attempts: 1, Class: "tax",
		Fingerprint: "0123456789abcdef", Message: "no rate", Reason: headers.ReasonTerminal, FirstFailedAt: now, FailedAt: now, Hops: 1,
	}
}

func dead(kind string, at, partition int32, offset int64, change ...func(*headers.Meta)) *kgo.Record {
	m := meta(partition, offset)
	for _, c := range change {
		c(&m)
	}
	return &kgo.Record{Partition: at, Key: fmt.Append(nil, offset), Value: []byte(kind), Headers: m.Append([]kgo.RecordHeader{{Key: "user", Value: []byte(kind)}})}
}

// aborted writes a letter that no committed reader sees, and the marker of its transaction.
func (m *mixture) aborted(letter *kgo.Record) {
	m.Helper()
	letter.Topic = "orders.dlq"
	aborted(m.T, m.k, letter)
}

// states are how many letters of each kind are in which state, as "kind: state", for a whole look
// at the topic.
func (m *mixture) states() map[string]int {
	m.Helper()
	got := map[string]int{}
	ledger := ledgerOf(m.k)
	seen := map[[2]int64]bool{}
	for l, err := range ledger.Letters(m.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.WithResolved) {
		if err != nil {
			m.Fatal(err)
		}
		at := [2]int64{int64(l.Record.Partition), l.Record.Offset}
		if seen[at] {
			m.Errorf("letter %v is there twice", at)
		}
		seen[at] = true
		got[m.kind[at]+": "+string(l.State)]++
	}
	for at, kind := range m.kind {
		if !seen[at] {
			got[kind+": gone, "+string(ledger.State(int32(at[0]), at[1]))]++
		}
	}
	return got
}

func same(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s, -want +got:\n%s", what, d)
	}
}

func TestOutcomes_EachLetterOfAMixtureHasOne(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		m := newMixture(t, k)
		var mu sync.Mutex
		ran := map[string]int{}
		run := func(group string) consumer.Handler {
			return func(_ context.Context, r *kgo.Record) error {
				mu.Lock()
				defer mu.Unlock()
				value := string(r.Value)
				if r.Value == nil {
					value = "null"
				}
				if len(r.Value) > 1000 {
					value = "original"
				}
				ran[group+": "+value]++
				return nil
			}
		}
		policy := consumer.Policy{Tiers: []time.Duration{5 * time.Second}}
		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: run("billing"), Policy: policy})
		k.Run(consumer.Config{Group: "audit", Topics: []string{"orders"}, Handler: run("audit"), Policy: policy})
		originals := k.Produce(
			&kgo.Record{Topic: "orders", Partition: 1, Value: incompressible()}, &kgo.Record{Topic: "orders", Partition: 1, Value: append(incompressible(), 'x')},
		)
		k.Handled(originals[1], 2)
		if err := k.Cluster.DeleteRecords("orders", 1, 1); err != nil { // the first original
			t.Fatal(err)
		}
		if _, err := m.adm.UpdatePartitions(t.Context(), 5, "orders.dlq", "orders.dlq.ledger"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		clear(ran)

		group := func(g string) func(*headers.Meta) { return func(m *headers.Meta) { m.Group = g } }
		// only of such a letter a copy can be known
		identified := func(m *headers.Meta) { m.Original.TopicID = [16]byte{1} }
		omitted := func(m *headers.Meta) { m.ValueOmitted = true }
		for i := range int64(20) {
			m.put("early", dead("early", 0, 0, 100+i))
			m.put("plain", dead("plain", 2, 2, 100+i, identified))
			m.put("duplicate", dead("duplicate", 2, 2, 100+i, identified))
			// on a partition that the source does not have
			m.put("elsewhere", dead("elsewhere", 4, 1, 100+i))
			m.put("audit's", dead("audit", 1, 1, 200+i, group("audit")))
			m.put("foreign", &kgo.Record{Partition: 3, Value: []byte("foreign"), Headers: []kgo.RecordHeader{{Key: "kafka_dlt-original-topic", Value: []byte("orders")}}})
			m.put("bare", &kgo.Record{Partition: 2})
			m.aborted(dead("aborted", 2, 2, 300+i))
			tombstone := dead("", 1, 1, 400+i)
			tombstone.Key, tombstone.Value = nil, nil
			m.put("tombstone", tombstone)
			m.put("empty", dead("", 0, 0, 500+i))
			m.put("resolved", dead("resolved", 1, 1, 600+i))
		}
		broken := dead("broken", 2, 2, 700)
		broken.Headers = append(broken.Headers, kgo.RecordHeader{Key: headers.Attempts, Value: []byte("many")})
		m.put("broken", broken)
		m.put("omitted", dead("", 1, 1, 1, omitted))
		m.put("lost", dead("", 1, 1, 0, omitted))
		m.put("too often", dead("", 1, 1, 800, func(m *headers.Meta) {
			m.Redrive = headers.Redrive{ID: "old", Count: 3, From: headers.Position{Topic: "orders.dlq", Partition: 1, Offset: 1}}
		}))
		m.aborted(dead("aborted", 1, 1, 900)) // the topic ends with a marker

		r, p := planned(t, k)
		ledger := ledgerOf(k)
		if n, err := ledger.Discard(t.Context(), dlq.Filter{Match: func(l *dlq.Letter) bool { return string(l.Record.Value) == "resolved" }}, dlq.Cursor{}, dlq.DiscardOptions{By: "eve", Why: "tests"}); n != 20 || err != nil {
			t.Fatal(n, err)
		}
		// 6 early letters and 5 empty ones
		if err := k.Cluster.DeleteRecords("orders.dlq", 0, 11); err != nil {
			t.Fatal(err)
		}
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		if err != nil {
			t.Fatal(err)
		}
		got := o.Counts
		if got.Selected != p.Letters || got.Sent != got.Succeeded || got.Sent+got.Skipped["expired"]+got.Skipped["resolved meanwhile"]+got.Skipped["value lost"] != got.Selected || got.Pending != 0 {
			t.Errorf("the plan has %d letters, and the run says %+v", p.Letters, got)
		}
		want := map[string]int{
			"early: gone, expired": 6, "early: succeeded": 14, "empty: gone, expired": 5, "empty: succeeded": 15,
			"plain: succeeded": 20, "duplicate: duplicate": 20, "elsewhere: succeeded": 20, "audit's: succeeded": 20, "tombstone: succeeded": 20,
			"resolved: discarded": 20, "omitted: succeeded": 1,
			"foreign: ": 20, "bare: ": 20, "broken: ": 1, "lost: ": 1, "too often: ": 1,
		}
		same(t, "letters", m.states(), want)
		mu.Lock()
		same(t, "records", ran, map[string]int{
			"billing: early": 14, "billing: ": 15, "billing: null": 20, "billing: plain": 20, "billing: elsewhere": 20, "billing: original": 1, "audit: audit": 20,
		})
		clear(ran)
		mu.Unlock()

		// The remaining letters go to a named target.
		k.CreateTopic("replay", 5)
		p = planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "replay"}})
		ends(t, redrive.Counts{Unfollowed: 41, Skipped: map[string]int64{"value lost": 1}})(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Window: time.Second}, nil)))
		copies := map[string]int{}
		for partition := range int32(5) {
			for _, c := range at(t, k, "replay", partition) {
				value := string(c.Value)
				if c.Value == nil {
					value = "null"
				}
				copies[value]++
				for key := range headers.Values(c.Headers) {
					if headers.Reserved(key) && key != headers.MetaFields && !strings.HasPrefix(key, "dlq-redrive-") {
						t.Errorf("a copy says %s", key)
					}
				}
			}
		}
		same(t, "copies", copies, map[string]int{"foreign": 20, "null": 20, "broken": 1})
	})
}
