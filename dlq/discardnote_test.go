package dlq

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// discardNotes are notes of several kinds.
func discardNotes() []DiscardNote {
	at := time.Date(2026, 11, 21, 3, 0, 0, 250_000_000, time.UTC)
	orders := headers.Position{Topic: "orders", TopicID: [16]byte{0xfb, 15: 0xff}, Partition: 3, Offset: 1045}
	back := orders
	back.Offset = 7
	return []DiscardNote{
		{Group: "billing", Partition: 3, Offset: 1045, Original: orders, Class: "orders.SKUError", Attempts: 4, At: at},
		{Group: "billing", Partition: 3, Offset: 2000, Original: back, Class: "expired", Attempts: 1, At: at},
		{Group: `a/b "c" <d>`, Partition: 3, Original: headers.Position{Topic: "orders"}, At: at},
	}
}

// The format of a note is a promise, like that of an entry.
func TestDiscardNote_FormatIsStable(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, want := range discardNotes() {
		r := want.Record(ordersLedger)
		fmt.Fprintf(&got, "%s %s\n", r.Key, r.Value)
		n := ParseLedgerRecord(r)
		if n.Err != nil || n.Letter != -1 || n.Run != "" || n.Entry.State != "" || r.Topic != ordersLedger || r.Partition != 3 {
			t.Errorf("%s is on %s-%d, and read as %+v", r.Key, r.Topic, r.Partition, n)
		}
		if n.Note == nil || !cmp.Equal(want, *n.Note) {
			t.Errorf("it is read otherwise: %s", cmp.Diff(&want, n.Note))
		}
	}
	golden(t, "discard-notes-v1.txt", got.String())
}

func TestDiscardNote_BrokenOnesNameTheFault(t *testing.T) {
	t.Parallel()
	const rest = `"group":"g","attempts":1,"at":"2026-11-21T03:00:00Z","original":"orders/3/7"`
	for _, c := range []struct {
		key, value, want string
		newer            bool
	}{
		{"discarded/g/orders/7", `{"v":1,` + rest + `,"mood":[1]}`, "", false},
		{"discarded/g/orders/7", `{"v":2,` + rest + `}`, "it has version 2", true},
		{"discarded/g/orders/7", `{` + rest + `}`, "it names no version", false},
		{"discarded/g/orders/7", `{"v":1`, "unexpected end", false},
		{"discarded/g/orders/7", `[]`, "cannot unmarshal array", false},
		{"discarded/other/orders/7", `{"v":1,` + rest + `}`, `its group is "g"`, false},
		{"discarded/g/orders/07", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded/g/orders/-7", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded/7", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded/g/7", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded//orders/7", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded/g/bills/7", `{"v":1,` + rest + `}`, `its original position is "orders/3/7"`, false},
		{"discarded//7", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded/", `{"v":1,` + rest + `}`, "its key has no group, topic and offset", false},
		{"discarded/g/orders/7", `{"v":1,"class":"no class",` + rest + `}`, `its class is "no class"`, false},
		{"discarded/g/orders/7", `{"v":1,"topicId":"short",` + rest + `}`, `its topic id is "short"`, false},
		{"discarded/g/orders/7", strings.Replace(`{"v":1,`+rest+`}`, "orders/3/7", "orders/3", 1), `its original position "orders/3"`, false},
		{"discarded/g/orders/7", strings.Replace(`{"v":1,`+rest+`}`, "2026-11-21T03", "yesterday", 1), "its time is", false},
		{"discarded/g/orders/7", strings.Replace(`{"v":1,`+rest+`}`, `"attempts":1`, `"attempts":-1`, 1), "it has -1 attempts", false},
	} {
		n := ParseLedgerRecord(&kgo.Record{Topic: ordersLedger, Key: []byte(c.key), Value: []byte(c.value)})
		if (n.Err == nil) != (c.want == "") || (n.Note == nil) != (n.Err != nil) || errors.Is(n.Err, ErrNewerVersion) != c.newer {
			t.Errorf("%s %s is read as %+v, %v", c.key, c.value, n.Note, n.Err)
		} else if n.Err != nil && (!strings.Contains(n.Err.Error(), c.want) || !strings.Contains(n.Err.Error(), "can stay")) && !c.newer {
			t.Errorf("%s %s: %v, want %q", c.key, c.value, n.Err, c.want)
		}
	}
}

// A note that is read is written as it was read, or its group, topic and offset are not known.
func FuzzDiscardNote_RoundTrips(f *testing.F) {
	for _, n := range discardNotes() {
		r := n.Record(ordersLedger)
		f.Add(r.Key, r.Value, r.Partition)
	}
	f.Add([]byte("discarded/a//7"), []byte(`{"v":1,"group":"a"}`), int32(-1))
	f.Add([]byte("discarded/a/b/orders/9223372036854775808"), []byte(`{"v":2}`), int32(0))
	f.Fuzz(func(t *testing.T, key, value []byte, partition int32) {
		n, err := readDiscardNote(&kgo.Record{Key: key, Value: value, Partition: partition})
		if err != nil {
			_ = err.Error()
			return
		}
		if n == nil {
			if value != nil {
				t.Fatalf("%q is no note, and there is no error", value)
			}
			return
		}
		r := n.Record(ordersLedger)
		if string(r.Key) != string(key) || r.Partition != partition {
			t.Errorf("key %q on %d is written as %q on %d", key, partition, r.Key, r.Partition)
		}
		again, err := readDiscardNote(r)
		if err != nil || !cmp.Equal(n, again) {
			t.Errorf("%q is read as %+v, and its own form %q as %+v: %v", value, n, r.Value, again, err)
		}
	})
}
