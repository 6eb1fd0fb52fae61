package tail

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/internal/bounds"
)

// started is a cluster, and what makes its clients.
func started(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, func(...kgo.Opt) *kgo.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster, func(opts ...kgo.Opt) *kgo.Client {
		cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		return cl
	}
}

// Another process's record among the run's own is shown, once, however large it is, and whether or
// not the run knows already where its own are; nothing of the run's is shown, also of a transaction
// that was aborted.
func TestTail_ShowsOnlyWhatOthersWrite(t *testing.T) {
	t.Parallel()
	_, client := started(t, kfake.NumBrokers(3))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	own, other := client(kgo.TransactionalID("run")), client()
	adm := kadm.NewClient(other)
	size := "5000000"
	if _, err := adm.CreateTopic(ctx, 4, 1, map[string]*string{"max.message.bytes": &size}, "t"); err != nil {
		t.Fatal(err)
	}
	id, epoch, err := own.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan *kgo.Record, 10_000)
	w := New(client(), func(r *kgo.Record) { shown <- r }, func(err error) { t.Error(err) })
	w.SkipProducers(map[int64]int16{id: epoch})
	w.Add(bounds.Positions{"t": {0: 0, 1: 0, 2: 0, 3: 0}})
	w.Start(ctx)
	defer w.Close()
	noise := rand.NewChaCha8([32]byte{})
	for round, size := range []int{10, 100_000, 900_000, 4_000_000, 10} {
		if err := own.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		var mine []*kgo.Record
		for i := range 400 {
			mine = append(mine, &kgo.Record{Topic: "t", Partition: int32(i % 4), Value: make([]byte, 10_000)})
			noise.Read(mine[i].Value)
		}
		if err := own.ProduceSync(ctx, mine...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		theirs := &kgo.Record{Topic: "t", Partition: int32(round % 4), Value: make([]byte, size)}
		noise.Read(theirs.Value)
		if err := other.ProduceSync(ctx, theirs).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			w.SkipRecords(mine)
		}
		if err := own.EndTransaction(ctx, kgo.TransactionEndTry(round != 2)); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-shown:
			if r.Partition != theirs.Partition || r.Offset != theirs.Offset || len(r.Value) != size {
				t.Errorf("round %d: %d/%d with %d bytes was shown, want %d/%d with %d", round, r.Partition, r.Offset, len(r.Value), theirs.Partition, theirs.Offset, size)
			}
		case <-ctx.Done():
			t.Fatalf("round %d: nothing was shown", round)
		}
	}
	to, err := bounds.Ends(ctx, adm, []string{"t"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WaitUntil(ctx, to); err != nil {
		t.Error(err)
	}
	if len(shown) > 0 {
		t.Errorf("%d more were shown", len(shown))
	}
}

// One broker that does not answer kept the watch from seeing what the others had, for as long as
// the client waits: no run aborted within a second of the failure then.
func TestTail_ABrokerThatHangsHidesNoOther(t *testing.T) {
	t.Parallel()
	cluster, client := started(t, kfake.NumBrokers(2), kfake.SleepOutOfOrder())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl := client()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	for p := range int32(2) {
		if err := cluster.MoveTopicPartition("t", p, p); err != nil {
			t.Fatal(err)
		}
	}
	hangs, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	var once sync.Once
	cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cluster.CurrentNode() == 1 {
			once.Do(func() { close(hangs) })
			cluster.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	shown := make(chan *kgo.Record, 10)
	w := New(client(), func(r *kgo.Record) { shown <- r }, func(error) {})
	w.Add(bounds.Positions{"t": {0: 0, 1: 0}})
	w.Start(ctx)
	defer w.Close()
	<-hangs
	for i := range 3 { // one may have been seen by what was asked for already
		began := time.Now()
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Partition: 0, Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-shown:
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("record %d was seen after %v", i, took)
			}
		case <-ctx.Done():
			t.Fatalf("record %d was not seen", i)
		}
	}
}

// What the run wrote is passed over, and not one offset more: that could be a failure that the
// watch did not see.
func TestTail_PassesOverWhatTheRunWrote(t *testing.T) {
	t.Parallel()
	const n = 300
	for seed := range uint64(200) {
		draw := rand.New(rand.NewPCG(seed, 1))
		own := map[int64]bool{}
		var answers []*kgo.Record
		for o := range int64(n) {
			if draw.IntN(20) > 0 {
				own[o] = true
				answers = append(answers, &kgo.Record{Topic: "t", Offset: o})
			}
		}
		// Those of two transactions come in turn.
		cut := draw.IntN(len(answers) + 1)
		answers = append(slices.Clone(answers[cut:]), answers[:cut]...)
		w := New(nil, nil, nil)
		w.Add(bounds.Positions{"t": {0: 0}})
		p := w.at["t"][0]
		for p.at < n {
			k := min(draw.IntN(40), len(answers))
			w.SkipRecords(answers[:k])
			answers = answers[k:]
			before := p.at
			p.pass()
			for o := before; o < p.at; o++ {
				if !own[o] {
					t.Fatalf("seed %d: offset %d is of another writer, and was passed over", seed, o)
				}
			}
			if len(answers) > 0 {
				continue
			}
			if own[p.at] {
				t.Fatalf("seed %d: it stays at %d, which the run wrote", seed, p.at)
			}
			p.ask(p.at+1, true, n) // another process's was read
		}
	}
}

// An empty partition that the tail does not have ended the comparison with the others.
func TestTail_WaitsForEveryPartition(t *testing.T) {
	t.Parallel()
	w := New(nil, nil, nil)
	w.Add(bounds.Positions{"t": {0: 0}})
	to := bounds.Positions{"t": {0: 5, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a map has no order
		if err := w.WaitUntil(over, to); err == nil {
			t.Fatal("it reached an offset of which it read nothing")
		}
	}
}
