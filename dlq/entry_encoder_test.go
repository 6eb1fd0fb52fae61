package dlq

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// An encoder shares bytes between records: what it gave for one must not change when it encodes the next.
func TestAnEntryEncoderGivesWhatRecordGivesAndNeverChangesIt(t *testing.T) {
	t.Parallel()
	type pair struct{ key, value, wantKey, wantValue []byte }
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		var (
			enc EntryEncoder
			all []pair
		)
		for range rapid.IntRange(1, 600).Draw(t, "entries") {
			e := Entry{
				TopicID: [16]byte{byte(rapid.IntRange(0, 2).Draw(t, "id"))},
				State:   State(some("state", "redriven", "redriven", "failed", "unfollowed", "")),
				Run:     some("run", "", "20260102-150405-0a1b2c"), At: time.UnixMilli(rapid.Int64Range(0, 2).Draw(t, "at")),
				By: some("by", "ann", "päul"), Why: some("why", "", `"quoted" <now>`), Class: some("class", "", "tax"),
				Target: headers.Position{Topic: some("target", "", "orders.retry.5s", `o"dd`), Partition: 3, Offset: rapid.Int64Range(0, 1<<40).Draw(t, "offset")},
			}
			if rapid.IntRange(0, 9).Draw(t, "edited") == 0 {
				e.Edited = []string{"value"}
			}
			letter := rapid.Int64Range(0, 1<<40).Draw(t, "letter")
			got, want := enc.Record(&e, "l", 3, letter), e.Record("l", 3, letter)
			if got.Topic != want.Topic || got.Partition != want.Partition || (got.Value == nil) != (want.Value == nil) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			all = append(all, pair{got.Key, got.Value, want.Key, want.Value})
		}
		for _, p := range all {
			if !bytes.Equal(p.key, p.wantKey) || !bytes.Equal(p.value, p.wantValue) {
				t.Fatalf("got %s %s, want %s %s", p.key, p.value, p.wantKey, p.wantValue)
			}
		}
	})
}

func BenchmarkEntriesOfARun(b *testing.B) {
	var enc EntryEncoder
	e := Entry{
		TopicID: [16]byte{1}, State: Redriven, Run: "20260102-150405-0a1b2c", At: time.UnixMilli(1), By: "ann", Why: "JIRA-1",
		Target: headers.Position{Topic: "orders.retry.5s", Partition: 3},
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.Target.Offset = int64(i)
		enc.Record(&e, "orders.dlq.ledger", 3, int64(i))
	}
}
