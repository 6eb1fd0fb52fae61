package forward

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// noClient cannot make a client, so that a copy is refused at once.
func noClient() (*kgo.Client, error) { return nil, kerr.TopicAuthorizationFailed }

func TestCopies_FinishARecordOnlyWhenItsCopyIsSafe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then     func(*Copies)
		answer   error
		finished bool
	}{
		"acknowledged":                 {answer: nil, finished: true},
		"acknowledged while draining":  {then: (*Copies).Drain, answer: nil, finished: true},
		"acknowledged when it is lost": {then: (*Copies).Close, answer: nil},
		"refused":                      {answer: kerr.TopicAuthorizationFailed},
		"refused while draining":       {then: (*Copies).Drain, answer: kerr.TopicAuthorizationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := testCopies(t, Omit, func() (*kgo.Client, error) { return kgo.NewClient(kgo.SeedBrokers("localhost:1")) }, noClient)
			c := NewCopy(l, 0, kgo.Record{Topic: "orders.dlq"})
			s.Send(c)
			if len(l.finishedNow()) > 0 {
				t.Error("finished while its copy is in flight")
			}
			if tt.then != nil {
				l.Lock()
				tt.then(s)
				l.Unlock()
			}
			s.returned(c, tt.answer)
			if got := l.finishedNow()[0]; got != tt.finished {
				t.Errorf("finished: %v, want %v", got, tt.finished)
			}
		})
	}
}

func TestCopies_TroubleIsARefusalOrALongSilence(t *testing.T) {
	t.Parallel()
	const patience = 10 * time.Second
	for name, tt := range map[string]struct {
		outstanding, refused int
		silence              time.Duration
		why                  string
	}{
		"nothing in flight":        {silence: time.Hour},
		"copies in flight":         {outstanding: 2, silence: patience},
		"copies without an answer": {outstanding: 2, silence: patience + time.Millisecond, why: "not acknowledged"},
		"a copy that was refused":  {outstanding: 2, refused: 1, why: "orders.dlq: NOT_AUTHORIZED"},
	} {
		now := time.Now()
		s := &Copies{outstanding: tt.outstanding, refused: tt.refused, trouble: errors.New("orders.dlq: NOT_AUTHORIZED"), progress: now.Add(-tt.silence)}
		since, trouble := s.Trouble(now, patience)
		why := ""
		if trouble != nil {
			why = trouble.Error()
		}
		if (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) || why != "" && !since.Equal(s.progress) {
			t.Errorf("%s: in trouble since %v because %q, want %q", name, since, why, tt.why)
		}
	}
}

// Without a ledger no run can learn of a discarded record, and forged headers must not hold up a
// lane for ever.
func TestCopies_GiveUpANoteThatNoLedgerTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := testCopies(t, Omit, func() (*kgo.Client, error) { return nil, kerr.UnknownTopicOrPartition }, noClient)
		s.Send(NewNote(l, 0, kgo.Record{Topic: "orders.dlq.ledger"}, false))
		time.Sleep(30 * time.Second)
		if l.finishedNow()[0] {
			t.Error("the note was abandoned in half a minute: the ledger may have been about to appear")
		}
		time.Sleep(30 * time.Second)
		if !l.finishedNow()[0] || len(l.outcomes) != 1 || l.outcomes[0] != NoteLost {
			t.Errorf("finished: %v, reported %v; want it abandoned, and reported once", l.finishedNow()[0], l.outcomes)
		}
	})
}

// A lane that drains commits as soon as no copy is on its books. The record of a dropped copy is
// finished by its note, so the books must not be empty between the two.
func TestCopies_NoteTakesThePlaceOfADroppedCopy(t *testing.T) {
	t.Parallel()
	kgos := &handedOver{to: map[*Copy]bool{}}
	s, l := testCopies(t, Drop, kgos.silent(false), kgos.silent(true))
	l.note = &kgo.Record{Topic: "orders.dlq.ledger"}
	ended := 0
	l.changed = func() {
		if s.Outstanding() == 0 {
			ended++
		}
	}
	c := sendsAlone(t, s, l, "orders.dlq", 0)[0]
	c.effort = tight
	s.Clients.single.promise(&kgo.Record{Topic: "orders.dlq", Context: copyContext{c}}, kerr.MessageTooLarge)
	l.Lock()
	s.Drain()
	note := s.Outstanding()
	l.Unlock()
	if ended > 0 || note != 1 || l.finishedNow()[0] {
		t.Fatalf("the books were empty %d times, then had %d copies; finished: %v; want the note alone, and not finished", ended, note, l.finishedNow()[0])
	}
	kgos.take(c)
	for c := range kgos.all() {
		s.promise(&kgo.Record{Topic: "orders.dlq.ledger", Context: copyContext{c}}, nil)
	}
	if !l.finishedNow()[0] || ended != 1 || s.bytes != 0 {
		t.Errorf("after the note, finished: %v, and the books were empty %d times, with %d bytes", l.finishedNow()[0], ended, s.bytes)
	}
}

// A lane runs records while there is room for their copies. New lanes begin with few, full ones
// wait until half is free, and one refused copy holds up its lane.
func TestCopies_HaveRoomWithinTheirBounds(t *testing.T) {
	t.Parallel()
	const count, bytes = 100, 1000
	for name, tt := range map[string]struct {
		s    Copies
		room bool
	}{
		"none":                          {Copies{}, true},
		"one that is larger than all":   {Copies{outstanding: 1, bytes: bytes, acknowledged: 9}, false},
		"below both bounds":             {Copies{outstanding: count - 1, bytes: bytes - 1, acknowledged: 9}, true},
		"at the bound":                  {Copies{outstanding: count, acknowledged: 9}, false},
		"full, and more than half left": {Copies{outstanding: count / 2, full: true, acknowledged: 9}, false},
		"full, and half is free":        {Copies{outstanding: count/2 - 1, full: true, acknowledged: 9}, true},
		"full, and half the bytes left": {Copies{outstanding: 1, bytes: bytes / 2, full: true, acknowledged: 9}, false},
		"a new lane's first":            {Copies{outstanding: firstCopies - 1}, true},
		"a new lane's next":             {Copies{outstanding: firstCopies}, false},
		"after an acknowledgement":      {Copies{outstanding: firstCopies, acknowledged: 1}, true},
		"one was refused":               {Copies{outstanding: 1, refused: 1, acknowledged: 9}, false},
	} {
		if got := tt.s.Room(count, bytes); got != tt.room {
			t.Errorf("%s: room is %v, want %v", name, got, tt.room)
		}
	}
}

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
