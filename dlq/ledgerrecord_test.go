package dlq

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// A ledger is a topic: a client that may write to it can write anything. Each record is of one
// kind, or has an error that names its place; and nothing that reads ledgers panics about it.
func FuzzLedgerRecord_IsOfOneKind(f *testing.F) {
	for i, e := range slices.Concat(entries(), laterEntries(), latestEntries()) {
		r := e.Record("l", 0, int64(i))
		f.Add(r.Key, r.Value, int64(0))
		report := discardReport(&e, "l", 0, int64(i))
		f.Add(report.Key, report.Value, int64(1_763_000_000_123))
	}
	for _, n := range discardNotes() {
		r := n.Record("l")
		f.Add(r.Key, r.Value, int64(-1))
	}
	f.Add([]byte("run/"), []byte("{}"), int64(0))
	f.Add([]byte("run/20261121-030000-7f3a01/selection/0"), []byte(`{"v":1,"offsets":""}`), int64(0))
	f.Fuzz(func(t *testing.T, key, value []byte, ms int64) {
		for _, value := range [][]byte{value, nil} {
			n := ParseLedgerRecord(&kgo.Record{Topic: "l", Partition: 2, Offset: 5, Key: key, Value: value, Timestamp: time.UnixMilli(ms)})
			if n.Err != nil {
				if e, ok := errors.AsType[*EntryError](n.Err); !ok || e.Error() == "" {
					t.Errorf("%q: the error is %v", key, n.Err)
				}
				continue
			}
			run, _, report := ledgerrecord.DiscardReportOf(n.Run)
			switch {
			case n.Note != nil && (n.Run != "" || n.Letter != -1 || n.Entry.State != ""):
				t.Errorf("%q: a note is %+v", key, n)
			case report && (run == "" || n.Letter < 0 || n.Run == "" || value != nil && n.Entry.State != Discarded):
				t.Errorf("%q: a report of run %q is %+v", key, run, n)
			case n.Run == "" && n.Note == nil && n.Letter < 0 && !isDiscardNote(n.Record):
				t.Errorf("%q is of no kind, and there is no error: %+v", key, n)
			case value == nil && (n.Entry.State != "" || n.Note != nil):
				t.Errorf("%q has no value, and says %+v", key, n)
			}
			_ = n.resolvedAt()
		}
	})
}
