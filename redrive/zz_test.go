package redrive_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"runtime/pprof"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

func TestZZ(t *testing.T) {
	ctx := context.Background()
	brokers := kgo.SeedBrokers("localhost:9092")
	src := fmt.Sprintf("zz%d", time.Now().UnixNano())
	cl, _ := kgo.NewClient(brokers, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	adm := kadm.NewClient(cl)
	one := "1"
	_ = one
	for _, n := range []string{src, src + ".dlq", src + ".dlq.ledger", src + ".retry.5s"} {
		if _, err := adm.CreateTopic(ctx, 8, 1, nil, n); err != nil {
			t.Fatal(err)
		}
	}
	const N = 500000
	now := time.Now()
	for i := range N {
		m := headers.Meta{Original: headers.Position{Topic: src, Partition: int32(i % 8), Offset: int64(i / 8), Timestamp: now}, Group: "billing", Attempts: 3, Class: "tax", Message: "cannot do it", Fingerprint: "0123456789abcdef", Reason: "terminal", FirstFailedAt: now, FailedAt: now, Hops: 1, Host: "h", Version: "v"}
		cl.Produce(ctx, &kgo.Record{Topic: src + ".dlq", Partition: int32(i % 8), Key: []byte(fmt.Sprint(i)), Value: make([]byte, 200), Headers: m.Append(nil)}, nil)
	}
	cl.Flush(ctx)
	member, _ := kgo.NewClient(brokers, kgo.ConsumerGroup("billing"+src), kgo.ConsumeTopics(src))
	_ = member
	// group billing
	g, _ := kgo.NewClient(brokers, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics(src), kgo.DisableAutoCommit())
	go func() {
		for {
			if g.PollFetches(ctx).IsClientClosed() {
				return
			}
		}
	}()
	time.Sleep(4 * time.Second)
	set := map[string]map[int32]kgo.EpochOffset{src + ".retry.5s": {}}
	for p := range int32(8) {
		set[src+".retry.5s"][p] = kgo.EpochOffset{Epoch: -1, Offset: 0}
	}
	g.CommitOffsetsSync(ctx, set, nil)
	r, _ := redrive.New(redrive.Config{Kafka: []kgo.Opt{brokers}, By: "x"})
	t0 := time.Now()
	p, err := r.Plan(ctx, redrive.Selection{Topic: src + ".dlq"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("plan", p.Letters, time.Since(t0))
	f, _ := os.Create("/tmp/rd.prof")
	_ = pprof.StartCPUProfile(f)
	t0 = time.Now()
	var done time.Duration
	o, err := r.Run(ctx, p, redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, MaxLag: -1, Window: -1}, func(e redrive.Event) {
		if e.Message != "" {
			fmt.Println(e.Message)
		}
		if e.Counts.Sent == N && done == 0 {
			done = time.Since(t0)
		}
	})
	pprof.StopCPUProfile()
	fmt.Println(o.Counts, err, done, "per s", float64(N)/done.Seconds(), time.Since(t0))
	g.Close()

	// bare
	for _, n := range []string{src + ".bare"} {
		_, _ = adm.CreateTopic(ctx, 8, 1, nil, n)
	}
	rd, _ := kgo.NewClient(brokers, kgo.ConsumeTopics(src+".dlq"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	var ws [2]*kgo.Client
	for i := range ws {
		ws[i], _ = kgo.NewClient(brokers, kgo.TransactionalID(fmt.Sprint(src, i)), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(1<<20))
	}
	t0 = time.Now()
	sent, in, w := 0, 0, 0
	busy := [2]chan error{make(chan error, 1), make(chan error, 1)}
	busy[0] <- nil
	busy[1] <- nil
	open := false
	end := func() {
		c, b := ws[w], busy[w]
		go func() { _ = c.Flush(ctx); b <- c.EndTransaction(ctx, kgo.TryCommit) }()
		w, in, open = 1-w, 0, false
	}
	for sent < N {
		for _, rec := range rd.PollFetches(ctx).Records() {
			if !open {
				if err := <-busy[w]; err != nil {
					t.Fatal(err)
				}
				_ = ws[w].BeginTransaction()
				open = true
			}
			h := headers.Strip(rec.Headers)
			ws[w].Produce(ctx, &kgo.Record{Topic: src + ".bare", Partition: rec.Partition, Key: rec.Key, Value: rec.Value, Headers: h}, nil)
			sent++
			if in++; in == 5000 {
				end()
			}
		}
	}
	if open {
		end()
	}
	<-busy[0]
	<-busy[1]
	d := time.Since(t0)
	fmt.Println("bare", d, "per s", float64(N)/d.Seconds())
}
