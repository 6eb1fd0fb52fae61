package consumer

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// handedOver is what kgo has, and whether it was sent alone.
type handedOver struct {
	mu sync.Mutex
	to map[*forward]bool
}

func (h *handedOver) all() map[*forward]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.to)
}

// take takes a copy back.
func (h *handedOver) take(fw *forward) (alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	alone = h.to[fw]
	delete(h.to, fw)
	return alone
}

// handsOver sees what a client is given.
type handsOver struct {
	*handedOver
	alone bool
}

func (h handsOver) OnProduceRecordBuffered(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fw, ok := r.Context.Value(forwardKey{}).(*forward); ok {
		h.to[fw] = h.alone
	}
}

// Copies come back in any order, are refused for any reason, and lanes are given up or lost at any time. The books tell at each
// moment what is on its way, and a record is finished exactly when its copy is safe.
func TestTheBooksOfCopiesAgreeWithANaiveModel(t *testing.T) {
	t.Parallel()
	for _, how := range []Disposition{DeadLetter, Discard, Stop} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { keepBooks(t, rt, how) }) // a T of a bubble has no Deadline, a TB is not asked
			})
		})
	}
}

func keepBooks(t *testing.T, rt *rapid.T, how Disposition) {
	kgos := &handedOver{to: map[*forward]bool{}}
	silent := func(alone bool) func() (*kgo.Client, error) {
		return func() (*kgo.Client, error) {
			return kgo.NewClient(kgo.SeedBrokers("localhost:1"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.WithHooks(handsOver{kgos, alone}),
				kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}))
		}
	}
	c := idle(t, Config{Policy: Policy{OnOversize: how, Tiers: []time.Duration{time.Second}}}, func() {})
	c.producer.Open, c.single.Open = silent(false), silent(true)
	l := held(c, 0, "m")
	defer func() {
		l.close()
		c.single.Close()
		c.producer.Close()
		synctest.Wait()
	}()
	f := l.source()
	live := map[*forward]int64{} // and the offset that each stands for
	unsafe := map[int64]bool{}
	var end int64
	over := false // nothing is tried again
	pick := func(rt *rapid.T) *forward {
		var all []*forward
		for fw := range kgos.all() {
			all = append(all, fw)
		}
		if len(all) == 0 {
			rt.Skip("kgo has none")
		}
		slices.SortFunc(all, func(a, b *forward) int { return int(a.offset - b.offset) })
		return all[rapid.IntRange(0, len(all)-1).Draw(rt, "which")]
	}
	answer := func(rt *rapid.T, err error) {
		fw := pick(rt)
		alone := kgos.take(fw)
		r := &kgo.Record{Topic: fw.rec.Topic, Context: fw}
		wasLast := fw.rec.Topic == l.siblings.DLQ && alone && oversizeEnds(fw, how)
		if alone {
			c.single.promise(r, err)
		} else {
			l.promise(r, err)
		}
		switch {
		case l.isGone():
		case err == nil, errors.Is(err, kerr.MessageTooLarge) && !over && wasLast && how == Discard:
			delete(live, fw)
			delete(unsafe, fw.offset)
		case over, errors.Is(err, kerr.MessageTooLarge) && wasLast && how == Stop:
			delete(live, fw)
		}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"send": func(rt *rapid.T) {
			if over {
				rt.Skip("no worker runs")
			}
			m := headers.Meta{
				Original: headers.Position{Topic: "orders", Offset: end}, Group: "billing", Attempts: 1, Class: "busy", FailedAt: time.Now(),
			}
			topic := l.siblings.DLQ
			if rapid.Bool().Draw(rt, "to a tier") {
				topic, m.NotBefore = l.siblings.Tiers[0].Topic, time.Now()
			} else {
				m.Reason = headers.ReasonTerminal
			}
			if rapid.Bool().Draw(rt, "with a message") {
				m.Message = "busy"
			}
			fw := &forward{feed: f, offset: end, rec: kgo.Record{Topic: topic, Headers: m.Append(nil)}}
			if rapid.Bool().Draw(rt, "with a value") {
				fw.rec.Value = []byte("value")
			}
			l.mu.Lock()
			f.tracker.Deliver(end)
			l.mu.Unlock()
			live[fw], unsafe[end] = end, true
			end++
			l.send(fw)
		},
		"safe":           func(rt *rapid.T) { answer(rt, nil) },
		"not authorized": func(rt *rapid.T) { answer(rt, kerr.TopicAuthorizationFailed) },
		"too large":      func(rt *rapid.T) { answer(rt, kerr.MessageTooLarge) },
		"too large too":  func(rt *rapid.T) { answer(rt, kerr.MessageTooLarge) },
		"time passes":    func(rt *rapid.T) { time.Sleep(16 * time.Second) },
		"given up": func(rt *rapid.T) {
			if rapid.IntRange(0, 9).Draw(rt, "rarely") > 0 || over {
				rt.Skip("another action: a lane is given up seldom, and once")
			}
			over = true
			l.mu.Lock()
			l.setState(laneDraining, "")
			l.forwards.cancelRetries()
			l.mu.Unlock()
			to := kgos.all()
			maps.DeleteFunc(live, func(fw *forward, _ int64) bool { _, ok := to[fw]; return !ok })
		},
		"lost": func(rt *rapid.T) {
			if rapid.IntRange(0, 19).Draw(rt, "rarely") > 0 || l.isGone() {
				rt.Skip("another action: a lane is lost seldom, and once")
			}
			over = true
			l.close()
		},
		"": func(rt *rapid.T) {
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.state == laneGone {
				if len(l.forwards.waiting) != 0 {
					rt.Fatalf("%d copies wait on a lane that is gone", len(l.forwards.waiting))
				}
				return
			}
			var bytes int64
			refused, waiting := 0, 0
			line, to := map[string]int{}, kgos.all()
			for fw := range live {
				bytes += fw.size
				if fw.tries > 0 {
					refused++
				}
				alone, has := to[fw]
				if !has {
					waiting++
				}
				if has && alone {
					line[fw.rec.Topic]++
				}
			}
			s := &l.forwards
			if s.outstanding != len(live) || s.bytes != bytes || s.refused != refused || len(s.waiting) != waiting {
				rt.Fatalf("%d copies on their way with %d bytes, %d refused, %d waiting; want %d, %d, %d, %d",
					s.outstanding, s.bytes, s.refused, len(s.waiting), len(live), bytes, refused, waiting)
			}
			for topic, n := range line {
				if n > 1 {
					rt.Fatalf("%d copies are sent alone to %s at a time", n, topic)
				}
			}
			floor := end
			for at := range unsafe {
				floor = min(floor, at)
			}
			if got := f.tracker.Floor(); got != floor {
				rt.Fatalf("floor %d, want %d: finished is what is safe", got, floor)
			}
		},
	})
}

// oversizeEnds reports whether a dead letter that is refused alone once more is at its end by the policy.
func oversizeEnds(fw *forward, how Disposition) bool {
	if how == DeadLetter {
		return false
	}
	step, more := fw.shrunk.Next(fw.written, fw.rec.Value, true)
	return !more || step.Omits()
}
