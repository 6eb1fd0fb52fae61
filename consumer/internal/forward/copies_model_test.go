package forward

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// Copies come back in any order, are refused for any reason, and lanes are revoked or lost at any
// time. The books say at each moment what is in flight, and a record is finished exactly when its
// copy is safe.
func TestCopies_BooksAgreeWithANaiveModel(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]Oversize{"omit": Omit, "drop": Drop, "halt": Halt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// The T of a bubble has no Deadline; a TB is not asked.
				rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { keepBooks(t, rt, how) })
			})
		})
	}
}

func keepBooks(t *testing.T, rt *rapid.T, how Oversize) {
	kgos := &handedOver{to: map[*Copy]bool{}}
	s, l := testCopies(t, how, kgos.silent(false), kgos.silent(true))
	defer func() {
		l.Lock()
		s.Close()
		l.Unlock()
		s.Clients.Close()
		synctest.Wait()
	}()
	live := map[*Copy]int64{} // and the offset that each stands for
	unsafe := map[int64]bool{}
	var end int64
	over, lost := false, false // nothing is tried again; nothing that comes back counts
	pick := func(rt *rapid.T) *Copy {
		var all []*Copy
		for c := range kgos.all() {
			all = append(all, c)
		}
		if len(all) == 0 {
			rt.Skip("kgo has none")
		}
		slices.SortFunc(all, func(a, b *Copy) int { return int(a.offset - b.offset) })
		return all[rapid.IntRange(0, len(all)-1).Draw(rt, "which")]
	}
	answer := func(rt *rapid.T, err error) {
		c := pick(rt)
		alone := kgos.take(c)
		r := &kgo.Record{Topic: c.rec.Topic, Context: copyContext{c}}
		wasLast := c.rec.Topic == s.DLQ && c.effort == tight && oversizeEnds(c, how)
		if alone {
			s.Clients.single.promise(r, err)
		} else {
			s.promise(r, err)
		}
		switch {
		case lost:
		case err == nil, errors.Is(err, kerr.MessageTooLarge) && !over && wasLast && how == Drop:
			delete(live, c)
			delete(unsafe, c.offset)
		case over, errors.Is(err, kerr.MessageTooLarge) && wasLast && how == Halt:
			delete(live, c)
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
			topic := s.DLQ
			if rapid.Bool().Draw(rt, "to a tier") {
				topic, m.NotBefore = "orders.retry.1s", time.Now()
			} else {
				m.Reason = headers.ReasonTerminal
			}
			if rapid.Bool().Draw(rt, "with a message") {
				m.Message = "busy"
			}
			c := NewCopy(l, end, kgo.Record{Topic: topic, Headers: m.Append(nil)})
			if rapid.Bool().Draw(rt, "with a value") {
				c.rec.Value = []byte("value")
			}
			live[c], unsafe[end] = end, true
			end++
			s.Send(c)
		},
		"safe":           func(rt *rapid.T) { answer(rt, nil) },
		"not authorized": func(rt *rapid.T) { answer(rt, kerr.TopicAuthorizationFailed) },
		"too large":      func(rt *rapid.T) { answer(rt, kerr.MessageTooLarge) },
		"too large too":  func(rt *rapid.T) { answer(rt, kerr.MessageTooLarge) },
		"time passes":    func(rt *rapid.T) { time.Sleep(16 * time.Second) },
		"revoked": func(rt *rapid.T) {
			if rapid.IntRange(0, 9).Draw(rt, "rarely") > 0 || over {
				rt.Skip("another action: a lane is revoked seldom, and once")
			}
			over = true
			l.Lock()
			s.Drain()
			l.Unlock()
			to := kgos.all()
			maps.DeleteFunc(live, func(c *Copy, _ int64) bool { _, ok := to[c]; return !ok })
		},
		"lost": func(rt *rapid.T) {
			if rapid.IntRange(0, 19).Draw(rt, "rarely") > 0 || lost {
				rt.Skip("another action: a lane is lost seldom, and once")
			}
			over, lost = true, true
			l.Lock()
			s.Close()
			l.Unlock()
		},
		"": func(rt *rapid.T) {
			synctest.Wait()
			l.Lock()
			defer l.Unlock()
			if lost {
				if len(s.waiting) != 0 {
					rt.Fatalf("%d copies wait on a lane that is gone", len(s.waiting))
				}
				return
			}
			var bytes int64
			refused, waiting := 0, 0
			line, to := map[string]int{}, kgos.all()
			for c := range live {
				bytes += c.size
				if c.tries > 0 {
					refused++
				}
				alone, has := to[c]
				if !has {
					waiting++
				}
				if has && alone {
					line[c.rec.Topic]++
				}
			}
			if s.outstanding != len(live) || s.bytes != bytes || s.refused != refused || len(s.waiting) != waiting {
				rt.Fatalf("%d copies in flight with %d bytes, %d refused, %d waiting; want %d, %d, %d, %d",
					s.outstanding, s.bytes, s.refused, len(s.waiting), len(live), bytes, refused, waiting)
			}
			for topic, n := range line {
				if n > 1 {
					rt.Fatalf("%d copies are sent alone to %s at a time", n, topic)
				}
			}
			for at := range end {
				if l.finished[at] == unsafe[at] {
					rt.Fatalf("record %d is finished: %v; a record is finished when its copy is safe", at, l.finished[at])
				}
			}
		},
	})
}

// oversizeEnds reports whether a dead letter that is refused alone once more is at its end by the
// policy.
func oversizeEnds(c *Copy, how Oversize) bool {
	if how == Omit {
		return false
	}
	step, more := c.shrunk.Next(c.written, c.rec.Value, true)
	return !more || step.Omits()
}
