package forward

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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
		s := &Copies{outstanding: tt.outstanding, refused: tt.refused, trouble: "orders.dlq: NOT_AUTHORIZED", progress: now.Add(-tt.silence)}
		since, why := s.Trouble(now, patience)
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
