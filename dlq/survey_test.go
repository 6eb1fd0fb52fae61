package dlq

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/cases"
)

// More topics than are read at a time, each with other letters and entries, one without a ledger.
func TestSummarizeAll_CountsWhatSummarizeCounts(t *testing.T) {
	cases.Skip(t)
	onKafka(t, func(t *testing.T, k *kafka) {
		ledgers := []*Ledger{k.ledger("orders.dlq")}
		k.fill(t, "orders.dlq", 2, 3)
		for i := range surveyed + 20 {
			topic := fmt.Sprintf("t%d.dlq", i)
			k.create(t, topic, 1)
			k.fill(t, topic, 0, i%4)
			if i%7 > 0 {
				k.create(t, topic+".ledger", 1)
				k.record(t, topic, 0, 0, Entry{State: states[i%len(states)]})
			}
			ledgers = append(ledgers, k.ledger(topic))
		}
		var begun int
		got := SummarizeAll(t.Context(), ledgers, func(read, _ int64) {
			if read == 0 {
				begun++
			}
		})
		if len(got) != len(ledgers) || begun < 4 {
			t.Fatalf("%d results, reads begun %d times", len(got), begun)
		}
		for i, r := range got {
			want, err := k.ledger(ledgers[i].topic).Summarize(t.Context(), Filter{}, Cursor{}, nil)
			if err != nil || r.Err != nil || r.Ledger != ledgers[i] {
				t.Fatalf("%s: %v, %v", ledgers[i].topic, r.Err, err)
			}
			if d := cmp.Diff(want, r.Summary); d != "" {
				t.Error(d)
			}
			if got, want := r.Ledger.Missing(), i > 0 && (i-1)%7 == 0; got != want {
				t.Errorf("the ledger of %s is missing: %v, want %v", r.Ledger.topic, got, want)
			}
		}
		if got := SummarizeAll(t.Context(), nil, nil); len(got) != 0 {
			t.Errorf("of none: %+v", got)
		}
	})
}

// An error about one topic does not hide the others, wherever it comes.
func TestSummarizeAll_AnErrorIsAboutItsTopic(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		topics := []string{"fine.dlq", "letters.dlq", "entries.dlq", "bounds.dlq", "newer.dlq", "stalled.dlq"}
		ledgers := []*Ledger{k.ledger("missing.dlq")}
		for _, topic := range topics {
			k.create(t, topic, 1)
			k.create(t, topic+".ledger", 1)
			k.fill(t, topic, 0, 2)
			k.record(t, topic, 0, 0, Entry{State: Discarded})
			ledgers = append(ledgers, k.ledger(topic))
		}
		k.produce(t, &kgo.Record{Topic: "newer.dlq.ledger", Key: []byte("1"), Value: []byte(`{"v":9}`)})
		fault := func(key kmsg.Key, topic string, err *kerr.Error) {
			k.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Topic: topic, Err: err, Count: -1})
		}
		fault(kmsg.Fetch, "letters.dlq", kerr.TopicAuthorizationFailed)
		fault(kmsg.Fetch, "entries.dlq.ledger", kerr.TopicAuthorizationFailed)
		fault(kmsg.ListOffsets, "bounds.dlq", kerr.UnsupportedForMessageFormat)
		fault(kmsg.Fetch, "stalled.dlq", kerr.LeaderNotAvailable)
		for _, r := range SummarizeAll(t.Context(), ledgers, nil) {
			want := map[string]string{
				"missing.dlq": `the dead-letter topic "missing.dlq" does not exist`,
				"letters.dlq": `dlq: summarize "letters.dlq": partition 0: TOPIC_AUTHORIZATION_FAILED`,
				"entries.dlq": `dlq: read ledger "entries.dlq.ledger": partition 0: TOPIC_AUTHORIZATION_FAILED`,
				"bounds.dlq":  `dlq: summarize "bounds.dlq": list start offsets: partition 0: UNSUPPORTED_FOR_MESSAGE_FORMAT`,
				"newer.dlq":   `dlq: read ledger "newer.dlq.ledger": 1 letters: `,
				"stalled.dlq": `dlq: summarize "stalled.dlq": partition 0 delivered nothing between offset 0 and its end at 2`,
			}[r.Ledger.topic]
			switch {
			case want == "" && r.Err == nil && r.Summary.Open == 1 && r.Summary.Resolved == 1:
			case want == "" || r.Err == nil || !strings.Contains(r.Err.Error(), want):
				t.Errorf("%s: %+v, %v, want %q", r.Ledger.topic, r.Summary, r.Err, want)
			case errors.Is(r.Err, ErrNewerVersion):
				if r.Summary == nil || r.Summary.Open != 1 {
					t.Errorf("%s: %+v", r.Ledger.topic, r.Summary)
				}
			// whose partitions are read as far as possible
			case r.Summary != nil && r.Ledger.topic != "stalled.dlq":
				t.Errorf("%s: %+v", r.Ledger.topic, r.Summary)
			}
		}
		k.Close()
		for _, r := range SummarizeAll(t.Context(), ledgers[:2], nil) {
			if r.Err == nil || r.Summary != nil {
				t.Errorf("without brokers: %+v", r)
			}
		}
	})
}

// The client of a survey has read the ledgers before it reads letters. What fails of a ledger by
// then is no error of all topics.
func TestReader_AnErrorOfAnEarlierReadFailsNothing(t *testing.T) {
	var failed error
	r := newReader(nil)
	r.add(&scan{topic: "orders.dlq", problem: func(err error) bool { failed = err; return false }}, map[int32]span{0: {end: 1}})
	r.fetchFailed(kgo.FetchError{Topic: "payments.dlq.ledger", Err: kerr.TopicAuthorizationFailed})
	if failed != nil || len(r.left) != 1 {
		t.Errorf("orders.dlq failed: %v", failed)
	}
	if r.fetchFailed(kgo.FetchError{Err: kgo.ErrClientClosed}); failed == nil {
		t.Error("an error of the client fails nothing")
	}
}
