package consumer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// storm has copies of a lane come to be safe in its first tier, one a millisecond.
func storm(l *lane, from, copies int64, due time.Duration) {
	for at := from; at < from+copies; at++ {
		l.forwards.progress = time.Now()
		l.wrote(&forward{rec: kgo.Record{Topic: l.feeds[1].topic}, landed: at, due: time.Now().Add(due)})
		time.Sleep(time.Millisecond)
	}
}

// stormy is a lane whose timer does not run.
func stormy(t *testing.T) *lane {
	l := healthy(t)
	f := l.feeds[1]
	f.timer = time.AfterFunc(time.Hour, func() {})
	t.Cleanup(func() { f.timer.Stop() })
	return l
}

func TestATiersFetchRestsInAStormForNoLongerThanHalfOfTheDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := stormy(t)
		f := l.feeds[1] // 5 s
		look := func() bool {
			f.endRest(time.Now().UnixMilli())
			return f.rest.on
		}
		storm(l, 0, stormOf-3000, f.delay)
		if f.rest.on || f.full.Load() {
			t.Fatal("rests over a few copies")
		}
		f.tracker.next = stormOf - 3000 // they are read
		f.rest.read(f.tracker.next)
		l.forwards.progress = time.Now()
		for at := range int64(stormOf) { // at once
			l.wrote(&forward{rec: kgo.Record{Topic: f.topic}, landed: f.tracker.next + at, due: time.Now().Add(f.delay)})
		}
		if !look() || !f.full.Load() {
			t.Fatal("does not rest in a storm")
		}
		storm(l, f.tracker.next+stormOf, 2000, f.delay)
		if !look() {
			t.Error("the rest is over after 2 s of a storm, want half of the delay")
		}
		storm(l, f.tracker.next+stormOf+2000, 600, f.delay)
		if look() || f.full.Load() {
			t.Error("rests for longer than half of the delay")
		}
		storm(l, f.tracker.next+stormOf+2600, 100, f.delay)
		if look() {
			t.Error("rests again before what is there was read")
		}
	})
}

func TestARestEndsWithItsStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := stormy(t)
		f := l.feeds[1]
		l.forwards.progress = time.Now()
		for at := range int64(stormOf) {
			l.wrote(&forward{rec: kgo.Record{Topic: f.topic}, landed: at, due: time.Now().Add(f.delay)})
		}
		if f.endRest(time.Now().UnixMilli()); !f.rest.on {
			t.Fatal("does not rest in a storm")
		}
		time.Sleep(stormGap * time.Millisecond)
		if f.endRest(time.Now().UnixMilli()); f.rest.on || f.full.Load() {
			t.Error("rests on with no copy coming")
		}
	})
}

// What a handler asked to have back soon lies among copies that are not due yet.
func TestATiersFetchDoesNotRestOverACopyThatIsDueSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := stormy(t)
		f := l.feeds[1]
		l.forwards.progress = time.Now()
		for at := range int64(stormOf + 1000) {
			due := f.delay
			if at == 10 {
				due = time.Second
			}
			l.wrote(&forward{rec: kgo.Record{Topic: f.topic}, landed: at, due: time.Now().Add(due)})
		}
		if f.rest.on {
			t.Error("rests although a copy is due in a second")
		}
		f.tracker.next = stormOf + 1000
		f.rest.read(f.tracker.next)
		for at := range int64(stormOf) {
			l.wrote(&forward{rec: kgo.Record{Topic: f.topic}, landed: f.tracker.next + at, due: time.Now().Add(f.delay)})
		}
		if !f.rest.on {
			t.Error("does not rest any more after it was read")
		}
	})
}
