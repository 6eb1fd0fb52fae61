package consumer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/consumer/internal/session"
)

// A commit that may still be accepted names its record alone from then on. One that was refused, or
// was not sent, does not.
func TestIsolator_KnowsWhichCommitsMayBeAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err                 error
		pending, unanswered bool
	}{
		"accepted":               {nil, false, false},
		"refused":                {fmt.Errorf("orders/0: %w", kerr.TopicAuthorizationFailed), false, false},
		"the member joins":       {unsentError{context.DeadlineExceeded}, true, false},
		"refused, as it joins":   {errors.Join(kerr.RebalanceInProgress), true, true},
		"no answer":              {fmt.Errorf("commit: %w", context.DeadlineExceeded), true, true},
		"the connection is lost": {errors.New("EOF"), true, true},
	} {
		if pending, unanswered := isPending(c.err), isUnanswered(c.err); pending != c.pending || unanswered != c.unanswered {
			t.Errorf("%s: pending %v, unanswered %v", name, pending, unanswered)
		}
	}
}

// While the member joins, no commit is sent. The wait until the next try ends with the consumer.
func TestIsolator_SendsNoCommitWhileTheMemberJoins(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(context.Background())
	c := isolator{&Consumer{commitTimeout: time.Hour, membership: session.NewMembership()}}
	if c.ctx, c.stop = ctx, ctx; !c.Wait(time.Millisecond) {
		t.Error("the wait ends though the consumer runs")
	}
	end()
	if answer := c.Commit(nil); answer != isolate.Unsent || c.Wait(time.Minute) {
		t.Errorf("the answer to a commit is %d, want Unsent, and that the wait ends", answer)
	}
}

// The commits that say whether a record is being decoded take no time of its handler, those that
// are under way included.
func TestOrigin_CommitsTakeNoTimeOfTheHandler(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var o origin
		o.beginAlone(7, func(bool) { time.Sleep(2 * time.Second) })
		go o.setDecoding(7, true)
		time.Sleep(time.Second)
		under, other := o.waited(7), o.waited(8)
		time.Sleep(time.Minute)
		if after := o.waited(7); under != time.Second || after != 2*time.Second || other != 0 {
			t.Errorf("it has waited for %v after a second, and for %v at last; another one for %v", under, after, other)
		}
		o.setDecoding(8, true)
		if o.endAlone(); o.waited(7) != 0 {
			t.Error("it waits though it runs alone no more")
		}
	})
}

// Suspects of a tier are dropped as accidents if none of them can have run: they were read, and
// none is due, or waits for its key, or runs. The floor stands still for as long as one is parked,
// so processes that are killed hours apart would count as deaths in a row.
func TestFeed_ForgetsAccidentsOnly(t *testing.T) {
	t.Parallel()
	now := time.Now()
	park := func(f *tierFeed, due time.Time) { f.parked.Admit(waitingFor(0, now.Add(-time.Hour), due), now) }
	for name, c := range map[string]struct {
		deaths  int
		is      func(*lane, *tierFeed)
		forgets bool
	}{
		"it is due in an hour": {1, func(*lane, *tierFeed) {}, true},
		"it is isolated":       {2, func(*lane, *tierFeed) {}, false},
		"it was not read":      {1, func(_ *lane, f *tierFeed) { f.tracker = offsets.New(0, 0) }, false},
		"another one is due":   {1, func(_ *lane, f *tierFeed) { park(f, now.Add(-time.Second)) }, false},
		"another one runs":     {1, func(l *lane, f *tierFeed) { l.units[&unit{feed: &f.feed}] = struct{}{} }, false},
		"another one waits for its key": {1, func(l *lane, f *tierFeed) {
			var q keyQueue
			q.Push(waitingItem{feed: &f.feed})
			l.keys = map[keyHash]*keyQueue{1: &q}
		}, false},
	} {
		l := bench(t, time.Second)
		l.units = map[*unit]struct{}{}
		f := l.tiers()[0]
		f.tracker = offsets.New(1, 0)
		f.window = isolate.New(isolate.Settings{CrashLimit: 3, Tier: true, Ask: func() {}, Now: time.Now},
			isolate.Start{Evidence: offsets.Evidence{Deaths: c.deaths, Suspect: 1}, End: -1})
		park(f, now.Add(time.Hour))
		c.is(l, f)
		if f.forgetAccidents(now); (f.window.Suspects() == nil) != c.forgets {
			t.Errorf("%s: the suspects are %+v", name, f.window.Suspects())
		}
	}
}

// Suspects that a commit has named, and that wait, are unfinished only if they can start: one whose
// topic is paused, or in front of which another one waits, would hold up all others.
func TestSuspectFeed_AwaitsNoneThatCannotStart(t *testing.T) {
	t.Parallel()
	span := []offsets.Span{{First: 3, Last: 3}}
	for name, c := range map[string]struct {
		is   func(*lane)
		left int
	}{
		"it can start":           {func(*lane) {}, 1},
		"its topic is paused":    {func(l *lane) { l.c.paused.Store(&map[string]bool{"orders": true}) }, 0},
		"none that is ready may": {func(l *lane) { l.source.window.Suspects().Hand(nil) }, 0},
		"it runs": {func(l *lane) {
			l.source.ready.Pop()
			l.units[&unit{feed: &l.source.feed, span: span[0]}] = struct{}{}
		}, 1},
		"another one runs": {func(l *lane) {
			l.source.ready.Pop()
			l.units[&unit{feed: &l.source.feed, span: offsets.Span{First: 4, Last: 4}}] = struct{}{}
		}, 0},
		"the lane is gone": {func(l *lane) { l.state = laneGone }, 0},
	} {
		_, lanes := pooled(t, OrderNone, 1, 1, nil)
		l := lanes[0]
		l.source.window = isolatedWindow()
		l.source.window.Suspects().Hand(span)
		l.source.ready.Push(&item{rec: &kgo.Record{Offset: 3}})
		c.is(l)
		if left, late := (suspectFeed{&l.source.feed}).Unfinished(span); len(left) != c.left || len(late) > 0 {
			t.Errorf("%s: %v is unfinished, %v late", name, left, late)
		}
	}
}

// isolatedWindow has suspects that a commit has to name.
func isolatedWindow() isolate.Window {
	return isolate.New(isolate.Settings{CrashLimit: 3, Ask: func() {}, Rests: func() bool { return false }, Now: time.Now},
		isolate.Start{Evidence: offsets.Evidence{Deaths: 2, Suspect: 5}, End: -1})
}
