package dlq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestLedger_FindReturnsAllEntriesOfTheLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, offset := range []int64{7, 8, 8, 8} {
			k.write(t, "orders.dlq", &kgo.Record{Partition: 1, Value: fmt.Append(nil, offset)}, from(offset))
		}
		id := k.readLedger(t, "orders.dlq")
		time.Sleep(time.Second)
		k.record(t, "orders.dlq", 1, 1, Entry{State: Redriven, Run: "a"})
		k.record(t, "orders.dlq", 1, 0, Entry{State: Expired})
		k.record(t, "orders.dlq", 1, 10, Entry{State: Expired})
		k.record(t, "orders.dlq", 0, 1, Entry{State: Expired})
		k.record(t, "orders.dlq", 1, 1, Entry{TopicID: [16]byte{9}, State: Discarded})
		k.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 1, Key: []byte("1"), Value: []byte("?")})
		k.record(t, "orders.dlq", 1, 1, Entry{})
		k.record(t, "orders.dlq", 1, 1, Entry{TopicID: id.TopicID(), State: Failed, Run: "a"})
		l := k.ledger("orders.dlq")
		letter, notes, err := l.Find(t.Context(), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if string(letter.Record.Value) != "8" || letter.State != Failed || letter.Meta.Class != "orders.SKUError" {
			t.Errorf("letter %+v", letter)
		}
		var says []string
		for _, n := range notes {
			says = append(says, fmt.Sprint(n.Entry.State, n.Err != nil))
		}
		if want := []string{"redrivenfalse", "true", "false", "failedfalse"}; !slices.Equal(says, want) {
			t.Errorf("notes %q, want %q", says, want)
		}
		for offset, want := range map[int64]State{0: Expired, 2: Duplicate, 3: Duplicate} {
			k.wantFound(t, "orders.dlq", 1, offset, want)
		}
	})
}

func TestLedger_FindSaysWhyThereIsNoLetter(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		cl := k.client(t, kgo.TransactionalID("tx"))
		commit := kgo.TryCommit
		k.fill(t, "one.dlq", 0, 2)
		k.inTransaction(t, cl, &commit, "2") // and the marker 3
		k.deleteTo(t, "one.dlq", 0, 1)
		k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
		for _, c := range []struct {
			topic     string
			partition int32
			offset    int64
			want      string
			notes     int
		}{
			{"one.dlq", 0, 0, "begins at offset 1", 1},
			{"one.dlq", 0, 3, "marker", 0},
			{"one.dlq", 0, 4, "ends at offset 4", 0},
			{"one.dlq", 0, -1, "ends at offset 4", 0},
			{"one.dlq", 1, 0, "has 1 partitions", 0},
			{"none.dlq", 0, 0, "does not exist", 0},
		} {
			letter, notes, err := k.ledger(c.topic).Find(t.Context(), c.partition, c.offset)
			if letter != nil || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), fmt.Sprintf("%s/%d/%d", c.topic, c.partition, c.offset)) || len(notes) != c.notes {
				t.Errorf("%+v: %v, %d notes, %v", c, letter, len(notes), err)
			}
			if errors.Is(err, ErrNoLetter) != (c.topic == "one.dlq") {
				t.Errorf("%v, is it ErrNoLetter?", err)
			}
		}
		if letter, notes, err := NewLedger("one.dlq", "none.ledger", k.opts()...).Find(t.Context(), 0, 1); err != nil || letter.State != "" || notes != nil {
			t.Errorf("without a ledger: %v, %v, %v", letter, notes, err)
		}
	})
}
