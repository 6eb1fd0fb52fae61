package dlq

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

var update = flag.Bool("update", false, "write golden files that are not there yet")

// golden compares bytes with a file of testdata. It never overwrites an existing file, since the
// format is a promise.
func golden(t *testing.T, file, got string) {
	t.Helper()
	file = "testdata/" + file
	if _, err := os.Stat(file); *update && errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is written otherwise (-want +got):\n%s", file, d)
	}
}

// collect returns what is yielded, without an error.
func collect[T any](t *testing.T, seq iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// letters returns the letters of a topic, by partition, in the order of their offsets.
func (k *kafka) letters(t *testing.T, topic string) []*Letter {
	t.Helper()
	return collect(t, Read(t.Context(), topic, Filter{}, Cursor{}, k.opts()...))
}

func (k *kafka) freeze(t *testing.T, topic string) Cursor {
	t.Helper()
	c, err := Freeze(t.Context(), topic, k.opts()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// summarize counts all letters of a ledger's topic.
func summarize(t *testing.T, l *Ledger) *Summary {
	t.Helper()
	s, err := l.Summarize(t.Context(), Filter{}, Cursor{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantError checks that an error has the given words.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

// open returns the open letters as "partition:offset".
func (k *kafka) open(t *testing.T, l *Ledger, f Filter, from Cursor) (got []string) {
	t.Helper()
	for _, letter := range collect(t, l.Letters(t.Context(), f, from, OpenOnly)) {
		got = append(got, fmt.Sprintf("%d:%d", letter.Record.Partition, letter.Record.Offset))
	}
	slices.SortStableFunc(got, func(a, b string) int { return int(a[0]) - int(b[0]) })
	return got
}

// wantStates checks the states of the letters of a partition, from the first on.
func wantStates(t *testing.T, l *Ledger, partition int32, want ...State) {
	t.Helper()
	for offset, want := range want {
		if got := l.State(partition, int64(offset)); got != want {
			t.Errorf("letter %d is %q, want %q", offset, got, want)
		}
	}
}

// wantFound checks the state of a letter as Find returns it.
func (k *kafka) wantFound(t *testing.T, topic string, partition int32, offset int64, want State) {
	t.Helper()
	l, _, err := k.ledger(topic).Find(t.Context(), partition, offset)
	if err != nil || l.State != want || l.Record.Offset != offset {
		t.Errorf("letter %d is found as %+v, %v; want %q", offset, l, err, want)
	}
}

// prunable returns what can be deleted.
func prunable(t *testing.T, l *Ledger, before time.Time) *Prunable {
	t.Helper()
	p, err := l.Prunable(t.Context(), before, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func prune(t *testing.T, l *Ledger, p *Prunable) {
	t.Helper()
	if err := l.Prune(t.Context(), p, PruneOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pruned returns the records of deleted letters that a topic's ledger has.
func (k *kafka) pruned(t *testing.T, topic string) []ledgerrecord.Prune {
	t.Helper()
	all := ledgerrecord.Prunes{}
	err := k.ledger(topic).Read(t.Context(), nil, func(n *LedgerRecord) {
		if _, err := all.Add(n.Run, n.Record.Value); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Sorted()
}

// wantImported imports a file whose letters are all to be written.
func (k *kafka) wantImported(t *testing.T, topic string, file io.ReadSeeker, want int64) {
	t.Helper()
	if n, err := Import(t.Context(), topic, file, ImportOptions{}, k.opts()...); n != want || err != nil {
		t.Errorf("%d letters were imported, %v; want %d", n, err, want)
	}
}

// readLedger returns the ledger of a topic after it was read.
func (k *kafka) readLedger(t *testing.T, topic string) *Ledger {
	t.Helper()
	l := k.ledger(topic)
	read(t, l)
	return l
}

func read(t *testing.T, l *Ledger) { readEach(t, l, nil) }

// readEach reads a ledger, with a function for each of its records.
func readEach(t *testing.T, l *Ledger, each func(*LedgerRecord)) {
	t.Helper()
	if err := l.Read(t.Context(), nil, each); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, got []string, errs []error, want ...string) {
	t.Helper()
	if len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func header(key, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: key, Value: []byte(value)}
}

// wantRead checks what a read yields, without an error, as "partition:value".
func (k *kafka) wantRead(t *testing.T, topic string, f Filter, from Cursor, want ...string) {
	t.Helper()
	got, errs := k.read(t.Context(), topic, f, from)
	check(t, got, errs, want...)
}

// deleteTo deletes the letters of a partition below an offset, as retention does.
func (k *kafka) deleteTo(t *testing.T, topic string, partition int32, offset int64) {
	t.Helper()
	if err := k.DeleteRecords(topic, partition, offset); err != nil {
		t.Fatal(err)
	}
}

// only returns the one letter of a topic.
func (k *kafka) only(t *testing.T, topic string) *Letter {
	t.Helper()
	letters := k.letters(t, topic)
	if len(letters) != 1 {
		t.Fatalf("%d letters, want 1", len(letters))
	}
	return letters[0]
}

// kafka is an embedded cluster on a network in memory, in a bubble where waiting
// costs nothing and which fails when a goroutine is left behind.
type kafka struct {
	*kfake.Cluster
	network kfake.VirtualNetwork
	cl      *kgo.Client // writes to the partition that a record names
}

// onKafka runs a test on a cluster, in parallel with other tests.
func onKafka(t *testing.T, f func(*testing.T, *kafka)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{}
		var err error
		k.Cluster, err = bubble.NewCluster(&k.network, kfake.Ports(9092, 9093),
			kfake.SeedTopics(3, "orders.dlq", "orders.dlq.ledger"), kfake.SeedTopics(1, "one.dlq", "one.dlq.ledger"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close) // after those of the clients
		k.cl = k.client(t)
		f(t, k)
	})
}

// runOnKafka runs a subtest on a cluster of its own.
func runOnKafka(t *testing.T, name string, f func(*testing.T, *kafka)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { onKafka(t, f) })
}

func (k *kafka) opts(more ...kgo.Opt) []kgo.Opt {
	return slices.Concat(bubble.Opts(&k.network), []kgo.Opt{kgo.SeedBrokers(k.ListenAddrs()...)}, more)
}

func (k *kafka) client(t *testing.T, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(k.opts(append([]kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(10e6), kgo.DisableClientMetrics(),
	}, more...)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// write writes a letter and waits for it.
func (k *kafka) write(t *testing.T, topic string, r *kgo.Record, m headers.Meta) {
	t.Helper()
	if err := writeSync(t.Context(), NewWriter(k.cl, topic), r, m); err != nil {
		t.Fatal(err)
	}
}

func writeSync(ctx context.Context, w *Writer, r *kgo.Record, m headers.Meta) error {
	done := make(chan error, 1)
	w.Write(ctx, r, m, func(err error) { done <- err })
	return <-done
}

// fill writes letters 0 … n-1 to partition p, with their number as value.
func (k *kafka) fill(t *testing.T, topic string, p int32, n int) {
	t.Helper()
	for i := range n {
		k.write(t, topic, &kgo.Record{Partition: p, Value: fmt.Append(nil, i)}, headers.Meta{Reason: headers.ReasonTerminal})
	}
}

// create makes a topic, whose configuration has one key at most.
func (k *kafka) create(t *testing.T, topic string, partitions int32, config ...string) {
	t.Helper()
	configs := map[string]string{}
	if len(config) > 0 {
		configs[config[0]] = config[1]
	}
	if err := k.CreateTopic(topic, partitions, configs); err != nil {
		t.Fatal(err)
	}
}

// ledger returns the ledger of a topic, which was not read yet.
func (k *kafka) ledger(topic string) *Ledger { return NewLedger(topic, topic+".ledger", k.opts()...) }

// produce writes records as they are.
func (k *kafka) produce(t *testing.T, rs ...*kgo.Record) {
	t.Helper()
	if err := k.cl.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// record writes an entry to the ledger of a topic.
func (k *kafka) record(t *testing.T, topic string, partition int32, offset int64, e Entry) {
	t.Helper()
	if e.State != "" && e.At.IsZero() {
		e.At = time.Now()
	}
	k.produce(t, e.Record(topic+".ledger", partition, offset))
}

// inTransaction writes values to partition 0 of one.dlq in a transaction and
// ends it, unless end is nil.
func (k *kafka) inTransaction(t *testing.T, cl *kgo.Client, end *kgo.TransactionEndTry, values ...string) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := writeSync(t.Context(), NewWriter(cl, "one.dlq"), &kgo.Record{Value: []byte(v)}, headers.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
	if end != nil {
		if err := client.EndTransaction(t.Context(), cl, *end, &kgo.Record{Topic: "one.dlq"}); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns what a read yields as "partition:value", and its errors.
func (k *kafka) read(ctx context.Context, topic string, f Filter, from Cursor) (got []string, errs []error) {
	for l, err := range Read(ctx, topic, f, from, k.opts()...) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, fmt.Sprintf("%d:%s", l.Record.Partition, l.Record.Value))
	}
	// within a partition as yielded
	slices.SortStableFunc(got, func(a, b string) int { return int(a[0]) - int(b[0]) })
	return got, errs
}

// of a source that was recreated, or of which no id is known.
func ofSource(id byte) func(*headers.Meta) {
	return func(m *headers.Meta) { m.Original.TopicID = [16]byte{id} }
}

// letters are of all kinds that are easily taken for each other.
func letters() []*kgo.Record {
	at := time.UnixMilli(1_763_000_000_123)
	odd := "\xff\x00"
	return []*kgo.Record{
		{Topic: "orders.dlq", Partition: 0, Offset: 17, Timestamp: at, Key: []byte("order-7"), Value: []byte(`{"sku":"<ä>"}`), Headers: []kgo.RecordHeader{
			header(headers.FailureReason, "terminal"), header("a", "1"), header("b", ""), {Key: "a"}, header("a", "1"), header("", "x"), header(odd, odd), header("ü\u2028", "\n"),
		}},
		{Topic: "orders.dlq", Partition: 0, Offset: 18, Timestamp: time.UnixMilli(-1)},
		{Topic: "orders.dlq", Partition: 2, Offset: 0, Timestamp: at, Key: []byte{}, Value: []byte{}},
		{Topic: "orders.dlq", Partition: 2, Offset: 1, Timestamp: at, Key: []byte(odd), Value: bytes.Repeat([]byte{0xfb, 0xff, 0}, 50_000)},
	}
}

func export(t testing.TB, rs ...*kgo.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := Export(&b, seq(rs)); err != nil || n != int64(len(rs)) {
		t.Fatal(n, err)
	}
	return b.Bytes()
}

// export returns all letters of one.dlq in the form of Export.
func (k *kafka) export(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Export(&b, Read(t.Context(), "one.dlq", Filter{}, Cursor{}, k.opts()...)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// from returns the Meta of a record of orders/0.
func from(offset int64) headers.Meta {
	return headers.Meta{
		Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Offset: offset}, Group: "billing", Attempts: 1, Class: "orders.SKUError",
		Fingerprint: "0123456789abcdef", Reason: headers.ReasonTerminal,
	}
}

// changed returns a Meta that differs in one field.
func changed(m headers.Meta, change func(*headers.Meta)) headers.Meta {
	change(&m)
	return m
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// laterEntries has one entry of each kind that version 1 did not have at first. An older reader
// ignores an unknown field, and refuses an unknown state.
func laterEntries() []Entry {
	at := time.Date(2026, 11, 21, 3, 0, 0, 250_000_000, time.UTC)
	return []Entry{
		{State: Succeeded, Run: "7f3a", At: at, Since: at.Add(-time.Minute), By: "ada"},
		{TopicID: [16]byte{1}, State: Unfollowed, Run: "7f3a", At: at, By: "ada", Target: headers.Position{Topic: "replay", Offset: 1}},
		{State: Duplicate, Run: "7f3a", At: at, Target: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 1_999_999_014}},
	}
}

// latestEntries has one entry of each state that version 3 added.
func latestEntries() []Entry {
	at := time.Date(2026, 11, 21, 3, 0, 0, 250_000_000, time.UTC)
	return []Entry{
		{TopicID: [16]byte{1}, State: Compensated, At: at, By: "ada", Why: "refunded, OPS-4713"},
		{TopicID: [16]byte{1}, State: Reopened, At: at, By: "ben", Why: "the refund failed"},
	}
}
