package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
)

// The bench of many partitions: the members of a group share them, all in one process. The topic is
// empty until each partition has its member. Then a process of its own fills it.
const (
	membersCount = 20
	membersMany  = 10_000 // partitions, beside
	membersFew   = 200
	// membersRecords fill one batch of each of the many partitions, and fifty of each of the few.
	membersRecords = 2_000_000
)

// writeBlocks fills the topic, in blocks of one size however many partitions there are.
func writeBlocks(ctx context.Context, j job) (report, error) {
	filled := data{Topic: j.Data.Topic, Ends: make([]int64, len(j.Data.Ends))}
	r := rig{seeds: j.Seeds}
	return report{}, r.write(ctx, func(yield func(*kgo.Record) bool) {
		for i := range int(j.Data.records()) {
			if !yield(filled.record(partitionOf(i, len(filled.Ends)), i, i, nil)) {
				return
			}
		}
	})
}

// partitionOf is where record i belongs.
func partitionOf(i, partitions int) int32 {
	return int32(i / (membersRecords / membersMany) % partitions)
}

// fill has the topic filled by another process, whose CPU time is not that of the members.
func fill(ctx context.Context, j job) error {
	j.Program, j.Heap, j.Profile = "write", 0, ""
	_, err := runChild(ctx, "", j)
	return err
}

// sidingMembers starts a group and measures when each partition has its member, the memory then,
// what the records cost, and when all have one again after another member joined.
func sidingMembers(ctx context.Context, j job) (report, error) {
	var (
		m    meter
		seen commits
		p    = newProgress(j.Data, m.begin)
		cfg  = sidingConfig(j)
		g    = members{partitions: len(j.Data.Ends)}
	)
	cfg.Kafka = append(cfg.Kafka, kgo.WithHooks(&seen))
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		p.observe(r)
		return nil
	}
	for range j.Members {
		g.join(ctx, cfg)
	}
	begun := time.Now()
	g.settle(0)
	ready, idle := time.Since(begun), inUse()
	g.do(func() error { return fill(ctx, j) })
	g.await(p.done)
	rep := m.end(j.Data.records())
	begun = time.Now()
	g.join(ctx, cfg)
	g.settle(g.partitions / (j.Members + 1))
	rep.Ready, rep.Joined = ready.Seconds(), time.Since(begun).Seconds()
	rep.HeapInuse, rep.Commit = idle, seen.most.Load()
	return rep, g.stop()
}

// members are the consumers of a group.
type members struct {
	partitions int
	all        []*running
	err        error
}

func (g *members) do(step func() error) {
	if g.err == nil {
		g.err = step()
	}
}

func (g *members) join(ctx context.Context, cfg consumer.Config) {
	g.do(func() error {
		c, err := start(ctx, cfg)
		if err == nil {
			g.all = append(g.all, c)
		}
		return err
	})
}

// await waits as the first member does.
func (g *members) await(done <-chan struct{}) {
	g.do(func() error { return g.all[0].until(done) })
}

// settle waits until each partition has a lane that runs, and the last member so many at least.
func (g *members) settle(least int) {
	g.do(func() error {
		for {
			lanes, last := 0, 0
			for _, c := range g.all {
				last = 0
				for _, l := range c.Health().Lanes {
					if l.State != consumer.StateStarting && l.State != consumer.StateDraining {
						last++
					}
				}
				lanes += last
			}
			if lanes == g.partitions && last >= least {
				return nil
			}
			if err := g.all[0].until(after(50 * time.Millisecond)); err != nil {
				return err
			}
		}
	})
}

// stop drains all members at once.
func (g *members) stop() error {
	errs := make([]error, len(g.all))
	var all sync.WaitGroup
	for i, c := range g.all {
		all.Go(func() { errs[i] = c.stop() })
	}
	all.Wait()
	return errors.Join(append(errs, g.err)...)
}

// inUse is the heap that is in use after a collection, in bytes.
func inUse() uint64 {
	var mem runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one leaves the content of pools and finalizers
	runtime.ReadMemStats(&mem)
	return mem.HeapInuse
}

// commits measure the largest request that commits offsets.
type commits struct{ most atomic.Int64 }

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (c *commits) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, n int, _, _ time.Duration, _ error) {
	if key != int16(kmsg.OffsetCommit) {
		return
	}
	for most := c.most.Load(); int64(n) > most && !c.most.CompareAndSwap(most, int64(n)); {
		most = c.most.Load()
	}
}

func closeAll(clients []*kgo.Client) {
	for _, cl := range clients {
		cl.Close()
	}
}

// bareMembers does the same work with clients like that of bareConsume.
func bareMembers(ctx context.Context, j job) (report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		m       meter
		p       = newProgress(j.Data, m.begin)
		has     atomic.Int64
		clients []*kgo.Client
		loops   sync.WaitGroup
	)
	count := func(sign int64) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, change map[string][]int32) {
			has.Add(sign * int64(len(change[j.Data.Topic])))
		}
	}
	defer func() { closeAll(clients) }()
	for range j.Members {
		cl, err := kgo.NewClient(append(groupOpts(j), kgo.AutoCommitInterval(time.Second),
			kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)), kgo.OnPartitionsLost(count(-1)))...)
		if err != nil {
			return report{}, err
		}
		clients = append(clients, cl)
		loops.Go(func() {
			_ = feed(ctx, cl, math.MaxInt64, func(records []*kgo.Record) { // until the context ends
				for _, r := range records {
					p.observe(r)
				}
				cl.MarkCommitRecords(records[len(records)-1])
			})
		})
	}
	for has.Load() < int64(len(j.Data.Ends)) {
		select {
		case <-ctx.Done():
			return report{}, ctx.Err()
		case <-after(50 * time.Millisecond):
		}
	}
	if err := fill(ctx, j); err != nil {
		return report{}, err
	}
	select {
	case <-ctx.Done():
		return report{}, ctx.Err()
	case <-p.done:
	}
	rep := m.end(j.Data.records())
	cancel()
	loops.Wait()
	for _, cl := range clients {
		if err := cl.CommitMarkedOffsets(context.WithoutCancel(ctx)); err != nil {
			return report{}, fmt.Errorf("committing: %w", err)
		}
	}
	return rep, nil
}
