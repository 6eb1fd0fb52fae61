package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
)

// What a consumer discards can be asked for later, until it is pruned.
func TestDiscardedRecordsAreListedUntilTheyArePruned(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	s.Run(consumer.Config{
		Group: "billing", Topics: []string{topic}, CommitInterval: 100 * time.Millisecond,
		Policy: consumer.Policy{Tiers: []time.Duration{200 * time.Millisecond}, OnExhausted: consumer.Discard, NoteDiscards: true, Breaker: consumer.Breaker{Off: true}, RetryBudget: consumer.RetryBudget{Off: true}},
		Handler: func(_ context.Context, r *kgo.Record) error {
			switch {
			case strings.HasPrefix(string(r.Value), "test"):
				return classify.Discard(classify.As(fmt.Errorf("a test order: %s", r.Value), "order.test"))
			case strings.HasPrefix(string(r.Value), "busy"):
				return busy("order.busy")
			}
			return nil
		},
	})
	const n = 297
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % 3), Value: fmt.Appendf(nil, "%s %d", []string{"test", "busy", "fine"}[i/3%3], i)})
	}
	records = s.Produce(records...)
	s.Conserved()
	s.await("all notes", func() bool {
		notes := 0
		for _, err := range dlq.NewLedger(topic+".dlq", topic+".dlq.ledger", s.Opts()...).DiscardNotes(t.Context()) {
			must(t, err)
			notes++
		}
		return notes == 2*n/3
	})
	want := map[string]string{}
	for _, r := range records {
		word, _, _ := strings.Cut(string(r.Value), " ")
		if attempts := map[string]int{"test": 1, "busy": 2}[word]; attempts > 0 {
			want[fmt.Sprintf("%s/%d/%d", topic, r.Partition, r.Offset)] = fmt.Sprintf("billing order.%s %d", word, attempts)
		}
	}
	rows := s.rows("list", topic+".dlq", "--discarded", "--limit", "0")
	for _, r := range rows {
		at, got := r.text("original"), fmt.Sprintf("%s %s %d", r.text("group"), r.text("class"), r.number("attempts"))
		if want[at] != got {
			t.Errorf("of %s it lists %q, want %q", at, got, want[at])
		}
		delete(want, at)
	}
	if len(rows) != 2*n/3 || len(want) != 0 {
		t.Errorf("%d rows, and %d are missing; want %d", len(rows), len(want), 2*n/3)
	}
	if rows := s.rows("list", topic+".dlq", "--discarded", "--limit", "0", "--class", "order.te*"); len(rows) != n/3 {
		t.Errorf("%d test orders, want %d", len(rows), n/3)
	}
	if rows := s.rows("summary", topic+".dlq"); len(rows) > 1 {
		t.Errorf("the summary has %v", rows)
	}
	if pruned := s.rows("prune", topic+".dlq", "--discarded-older-than", "1ms", "--yes")[0].number("discardNotes"); pruned != 2*n/3 {
		t.Errorf("%d notes are deleted, want %d", pruned, 2*n/3)
	}
	if rows := s.rows("list", topic+".dlq", "--discarded"); len(rows) != 0 {
		t.Errorf("it lists %v", rows)
	}
}

// A record that dies a second time has one story.
func TestSecondDeadLetterTellsOfBothLives(t *testing.T) {
	t.Parallel()
	binary(t)
	s := onKafka(t)
	for _, to := range []string{"tier", "source"} {
		topic := topicName(t) + "-" + to
		s.CreateTopic(topic, 1)
		v := s.deploy(topic, topic, 200*time.Millisecond, 400*time.Millisecond)
		v.deploys(func(_ string, f consumer.Delivery) error { return busy(fmt.Sprintf("life.%d", f.Attempt)) })
		s.incident(topic, "order", 1)
		first := s.rows("show", topic+".dlq", "0:0")[0]
		args := []string{"run", topic + ".dlq", "--max-attempts", "2", "--window", "1s", "--yes"}
		if to == "source" {
			args = append(args, "--target", topic)
		}
		s.begin(args...).ends(3)
		s.await("the second letter", func() bool { return s.count(topic+".dlq") == 2 })
		// the offset behind the first is the letter's: consumers write no transactions
		second := s.rows("show", topic+".dlq", "0:1")[0]
		var story []string
		for _, a := range second["history"].([]any) {
			a := row(a.(map[string]any))
			story = append(story, fmt.Sprint(a.number("attempt"), " ", a.text("class"), " ", a.text("verdict"), " ", a.text("message")))
		}
		want := []string{
			"1 life.1 retry cannot go on", "2 life.2 retry cannot go on", "3 life.3 retry cannot go on",
			"1 life.1 retry cannot go on", "2 life.2 retry cannot go on",
		}
		if !slices.Equal(story, want) {
			t.Errorf("by the %s the story is %q, want %q", to, story, want)
		}
		if second["firstFailedAt"] != first["firstFailedAt"] || second.number("attempts") != 2 || second.number("redriveMaxAttempts") != 2 || second.text("reason") != "exhausted" {
			t.Errorf("by the %s the second letter is %v, the first %v", to, second, first)
		}
	}
}
