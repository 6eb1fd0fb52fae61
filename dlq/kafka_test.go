package dlq

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// kafka is an embedded cluster on a network in memory, in a bubble where waiting
// costs nothing and which fails when a goroutine is left behind.
type kafka struct {
	*kfake.Cluster
	network kfake.VirtualNetwork
	cl      *kgo.Client // writes to the partition that a record names
}

func onKafka(t *testing.T, f func(*testing.T, *kafka)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{}
		var err error
		k.Cluster, err = kfake.NewCluster(kfake.Ports(9092, 9093), kfake.ListenFn(k.network.Listen),
			kfake.SeedTopics(3, "orders.dlq", "orders.dlq.ledger"), kfake.SeedTopics(1, "one.dlq", "one.dlq.ledger"))
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		k.cl = k.client(t)
		defer k.cl.Close()
		f(t, k)
	})
}

func (k *kafka) opts(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(k.ListenAddrs()...), kgo.Dialer(k.network.DialContext)}, more...)
}

func (k *kafka) client(t *testing.T, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(k.opts(append([]kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(10e6),
	}, more...)...)...)
	if err != nil {
		t.Fatal(err)
	}
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

func (k *kafka) create(t *testing.T, topic string, partitions int32) {
	t.Helper()
	if err := k.CreateTopic(topic, partitions, nil); err != nil {
		t.Fatal(err)
	}
}

// ledger is the ledger of a topic, with nothing read yet.
func (k *kafka) ledger(topic string) *Ledger { return NewLedger(topic, topic+".ledger", k.opts()...) }

// produce writes records as they are.
func (k *kafka) produce(t *testing.T, rs ...*kgo.Record) {
	t.Helper()
	if err := k.cl.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// note writes an entry to the ledger of a topic.
func (k *kafka) note(t *testing.T, topic string, partition int32, offset int64, e Entry) {
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
		if err := cl.EndTransaction(t.Context(), *end); err != nil {
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
	slices.SortStableFunc(got, func(a, b string) int { return int(a[0]) - int(b[0]) }) // within a partition as yielded
	return got, errs
}
