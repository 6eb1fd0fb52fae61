package dlq

import (
	"encoding/base64"
	"fmt"
	"testing"
)

// The consumer discards a record that says of itself that it was brought back. Of another cluster, or of a topic that was made anew
// since, it would hide a letter that it has nothing to do with.
func TestWhatAConsumerSaysOfARunThatTheLedgerDoesNotKnowCountsForNothing(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 1, 4)
		l := k.ledger("orders.dlq")
		read(t, l)
		run := func(id string, topic [16]byte) {
			t.Helper()
			value := `{"v":1,"id":"` + id + `"}`
			if topic != ([16]byte{}) {
				value = fmt.Sprintf(`{"v":1,"id":%q,"topicId":%q}`, id, base64.RawURLEncoding.EncodeToString(topic[:]))
			}
			k.produce(t, RunRecord("orders.dlq.ledger", id, []byte(value)))
		}
		run("known", l.TopicID())
		run("without-id", [16]byte{})
		run("of-another", [16]byte{1})
		for offset, id := range []string{"known", "without-id", "of-another", "made-up"} {
			k.note(t, "orders.dlq", 1, int64(offset), Entry{State: Discarded, Run: id, By: "group billing"})
		}
		check := func(l *Ledger) {
			t.Helper()
			for offset, want := range []State{Discarded, Discarded, "", ""} {
				if got := l.State(1, int64(offset)); got != want {
					t.Errorf("letter %d is %q, want %q", offset, got, want)
				}
				letter, _, err := l.Find(t.Context(), 1, int64(offset))
				if err != nil || letter.State != want {
					t.Errorf("letter %d is found as %q, %v; want %q", offset, letter.State, err, want)
				}
			}
		}
		read(t, l) // goes on
		check(l)
		again := k.ledger("orders.dlq")
		read(t, again)
		check(again)

		run("made-up", l.TopicID()) // it was read before its run was
		k.note(t, "orders.dlq", 1, 2, Entry{State: Succeeded, Run: "of-another", TopicID: l.TopicID()})
		run("of-another", l.TopicID())
		read(t, l)
		if a, b := l.State(1, 3), l.State(1, 2); a != Discarded || b != Succeeded {
			t.Errorf("the letters are %q and %q", a, b)
		}
	})
}
