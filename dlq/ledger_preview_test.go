package dlq

import (
	"bytes"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
)

// The preview of an import has the counts that the ledger has after it.
func TestImportPreview_CountsWhatTheImportDoes(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		meta := func(offset int64) headers.Meta {
			return headers.Meta{
				Reason: headers.ReasonTerminal, Group: "billing", FailedAt: time.UnixMilli(offset), Original: headers.Position{Topic: "one", TopicID: [16]byte{1}, Offset: offset},
			}
		}
		for _, offset := range []int64{0, 1, 2, 3, 3} { // one is there twice
			k.write(t, "one.dlq", &kgo.Record{Value: []byte("x")}, meta(offset))
		}
		k.produce(t, &kgo.Record{Topic: "one.dlq", Value: []byte("foreign")})
		k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
		k.record(t, "one.dlq", 0, 1, Entry{State: Discarded})
		k.record(t, "one.dlq", 0, 2, Entry{State: Discarded})
		k.record(t, "one.dlq", 0, 5, Entry{State: Discarded})
		file := bytes.NewReader(append([]byte("begun"), k.export(t)...))
		prune(t, k.readLedger(t, "one.dlq"), &Prunable{Until: map[int32]int64{0: 2}, Discarded: 1})
		foresee := func(copies, opened int64, reopened map[State]int64) {
			t.Helper()
			if _, err := file.Seek(5, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			l := k.readLedger(t, "one.dlq")
			before := summarize(t, l)
			o, err := l.PreviewImport(t.Context(), file, nil)
			if err != nil || o.Broken != nil || o.Copies != copies || !maps.Equal(o.Reopened, reopened) {
				t.Errorf("foreseen is %+v, %v; want %d copies and %v", o, err, copies, reopened)
			}
			k.wantImported(t, "one.dlq", file, 6)
			after := summarize(t, l)
			if got := after.Open - before.Open; got != opened {
				t.Errorf("%d letters are open that were not, want %d", got, opened)
			}
		}
		// Two of the pruned letters are open again. So is the letter that siding did not write: its
		// duplicates cannot be recognized.
		foresee(3, 3, map[State]int64{Succeeded: 1, Discarded: 2})
		foresee(5, 1, map[State]int64{Discarded: 1})
	})
}

func TestImportPreview_EndsAtABrokenLine(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		good := export(t, &kgo.Record{Topic: "orders.dlq", Timestamp: time.Now()})
		file := bytes.NewReader(append(append(bytes.Clone(good), "{\n"...), good...))
		o, err := k.ledger("orders.dlq").PreviewImport(t.Context(), file, nil)
		if err != nil || o.Broken == nil || !strings.Contains(o.Broken.Error(), "line 2: ") || file.Len() != int(file.Size()) {
			t.Errorf("foreseen is %+v, %v, with %d bytes left of the file", o, err, file.Len())
		}
	})
}

// An import is not a transaction. Letters that a first attempt wrote stay, and the second attempt
// writes duplicates of them, even of those that were resolved in between. Only duplicates of
// letters that siding did not write cannot be recognized.
func TestImportPreview_AfterAHalfImportCountsOnce(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		var archive []*kgo.Record
		for i := range int64(4) {
			for p := range int32(2) {
				m := from(i)
				m.Original.Partition, m.FailedAt = p, time.UnixMilli(1_000+i)
				r := &kgo.Record{Topic: "orders.dlq", Partition: p, Timestamp: time.Now(), Headers: m.Append(nil)}
				if i == 3 {
					r.Headers = nil // foreign
				}
				archive = append(archive, r)
			}
		}
		file := bytes.NewReader(export(t, archive...))
		refused := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Partitions: []int32{1}, Err: kerr.InvalidRecord, Count: -1})
		n, err := Import(t.Context(), "orders.dlq", file, ImportOptions{}, k.opts()...)
		if n != 4 || err == nil || !strings.Contains(err.Error(), "4 letters were written, then: line 2: write it to orders.dlq/1") {
			t.Fatalf("%d letters were imported, %v; want those of one partition", n, err)
		}
		refused.Remove()
		time.Sleep(time.Minute)
		k.record(t, "orders.dlq", 0, 0, Entry{State: Succeeded})
		time.Sleep(time.Minute)
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		k.wantImported(t, "orders.dlq", file, 8)
		check(t, k.open(t, k.ledger("orders.dlq"), Filter{}, Cursor{}), nil, "0:1", "0:2", "0:3", "0:7", "1:0", "1:1", "1:2", "1:3")
	})
}
