package consumer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// waitingFor is a record of the first tier that is due at a time.
func waitingFor(offset int64, written, due time.Time) *kgo.Record {
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 3}, Group: "billing", Attempts: 1, Class: "busy", Message: "busy",
		FirstFailedAt: written, FailedAt: written, NotBefore: due, Hops: 1,
	}
	return &kgo.Record{Topic: "orders.retry.5s", Partition: 3, Offset: offset, Timestamp: written, Headers: m.Append(nil)}
}

func TestStay_ALookIsWhenTheRecordIsDueOrHasToBeWrittenAgain(t *testing.T) {
	t.Parallel()
	const day, ages = 24 * time.Hour, 50 * 365 * 24 * time.Hour
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	never := -time.Duration(now.UnixMilli()) * time.Millisecond // the due time of what redrive wrote
	for name, tt := range map[string]struct {
		due, written, read time.Duration // from now
		keeps              time.Duration // of the topic; 0 is what Provision says, 7 days
		want               time.Duration
	}{
		"due":                                  {due: 0, want: 0},
		"overdue":                              {due: -time.Hour, want: -time.Hour},
		"without a due time":                   {due: never, written: -time.Hour, want: -time.Hour},
		"and the broker's clock is ahead":      {due: never, written: time.Hour, want: 0},
		"an ordinary wait":                     {due: 5500 * time.Millisecond, want: 5500 * time.Millisecond},
		"an hour":                              {due: time.Hour, want: time.Hour},
		"longer than half of the retention":    {due: 6 * day, want: 84 * time.Hour},
		"and it was there for a while":         {due: 3 * day, written: -3 * day, read: -2 * day, want: 12 * time.Hour},
		"and was read just now":                {due: 3 * day, written: -3 * day, want: 21 * time.Hour},
		"the broker's clock is hours behind":   {due: time.Hour, written: -9 * time.Hour, want: time.Hour},
		"the broker's clock is hours ahead":    {due: time.Hour, written: 9 * time.Hour, want: time.Hour},
		"the broker's clock is decades behind": {due: 5 * time.Second, written: -ages, want: 5 * time.Second},
		"and the wait is long":                 {due: 6 * day, written: -ages, want: 21 * time.Hour},
		"the broker's clock is decades ahead":  {due: 6 * day, written: ages, want: 84 * time.Hour},
		"a topic of an hour":                   {due: time.Hour, keeps: time.Hour, want: 30 * time.Minute},
		"a topic of seconds":                   {due: time.Hour, keeps: 10 * time.Second, want: 7500 * time.Millisecond},
		"a topic that keeps for ever":          {due: 6 * day, keeps: -1, want: 6 * day},
		"the farthest that is believed":        {due: 180 * time.Hour, want: 84 * time.Hour},
		"farther":                              {due: 180*time.Hour + time.Millisecond, written: -time.Hour, want: -time.Hour},
		"farther, by a broker that is ahead":   {due: 180*time.Hour + time.Millisecond, written: time.Hour, want: 84 * time.Hour},
	} {
		f := &feed{lane: &lane{c: &Consumer{}, policy: &Policy{Jitter: 0.1, MaxRetryAfter: time.Hour}}, topic: "orders.retry.5s", delay: 5 * time.Second}
		if tt.keeps != 0 {
			f.lane.c.retentions.Store(f.topic, tt.keeps)
		}
		r := waitingFor(0, now.Add(tt.written), now.Add(tt.due))
		if got := time.UnixMilli(f.dueOf(r, now.Add(tt.read), now)).Sub(now); got != tt.want {
			t.Errorf("%s: looked at after %v, want %v", name, got, tt.want)
		}
	}
}

// What gave up its bytes is fetched again, and has been here since it was read first. Of that the feed keeps a few marks, which may
// say that it was read a little later than it was, and never earlier: earlier, it would be written again too soon.
func TestStay_WhenARecordWasReadIsKnownToAnEighth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := &feed{lane: &lane{c: &Consumer{}, policy: &Policy{}}, topic: "orders.retry.5s", delay: 5 * time.Second}
		f.lane.c.retentions.Store(f.topic, time.Hour)
		least, _, _ := f.maxStay()
		now := time.UnixMilli(1_700_000_000_000)
		var read []time.Time // by offset: the naive model
		for range rapid.IntRange(1, 200).Draw(rt, "polls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(least)/3).Draw(rt, "later")))
			f.markRead(int64(len(read)), now)
			for range rapid.IntRange(1, 5).Draw(rt, "records") {
				read = append(read, now)
			}
			for offset, at := range read {
				got := f.readAt(int64(offset), now)
				if got.Before(at) || got.After(now) {
					rt.Fatalf("%d was read %v ago, and at the latest %v ago", offset, now.Sub(at), now.Sub(got))
				}
				if now.Sub(at) >= least+least/readSteps && now.Sub(got) < least {
					rt.Fatalf("%d was read %v ago, and has stayed for %v only", offset, now.Sub(at), now.Sub(got))
				}
			}
		}
		if len(f.readMarks) > readSteps+2 {
			rt.Fatalf("%d marks are kept", len(f.readMarks))
		}
	})
}

// A topic's retention may be learned, or set, after its records were read. There was no note then
// of when that was: each time that such a record was fetched again it counted as just read, and the
// copy that it needs was put off, until retention took it.
func TestStay_ARecordReadBeforeARetentionWasKnownIsPutOffOnce(t *testing.T) {
	t.Parallel()
	f := &feed{lane: &lane{c: &Consumer{}, policy: &Policy{}}, topic: "orders.retry.5s", delay: 5 * time.Second}
	f.lane.c.retentions.Store(f.topic, -time.Second) // for ever
	read := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := waitingFor(0, read.Add(-1000*time.Hour), read.Add(6*24*time.Hour)) // the broker's clock is behind
	f.markRead(r.Offset, read)
	f.lane.c.retentions.Store(f.topic, time.Hour)
	least, _, _ := f.maxStay()
	for now := read; now.Sub(read) < 2*time.Hour; now = now.Add(time.Minute) {
		if at := time.UnixMilli(f.dueOf(r, f.readAt(r.Offset, now), now)).Sub(read); at > least+least/readSteps {
			t.Fatalf("after %v it is put off to %v after it was read, want %v and an eighth at most", now.Sub(read), at, least)
		}
	}
}

// The host's clock is set while a record is with a worker, or while it waits: the worker finds a record that is not due. It is parked
// again in memory; a copy is written only when the least stay is over, by the monotonic clock.
func TestStay_ARecordThatIsNotDueWhenItsTurnComesIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		due     time.Duration
		written time.Duration
		copied  time.Duration // after so long a copy is written; 0 for none
	}{
		"set back by an hour":                   {due: time.Hour},
		"set back by days":                      {due: 6 * 24 * time.Hour, copied: 84 * time.Hour},
		"set forward, and the broker is behind": {due: 6 * 24 * time.Hour, written: -1000 * time.Hour, copied: 21 * time.Hour * 9 / 8}, // to an eighth
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := idle(t, Config{Policy: Policy{Jitter: -1}}, func() { t.Error("ran before its time") })
				l := held(c, 3, "m")
				f := l.tiers()[0]
				now := time.Now()
				r := waitingFor(0, now.Add(tt.written), now.Add(tt.due))
				f.offerTier([16]byte{}, []*kgo.Record{r})
				look := func() {
					l.mu.Lock()
					for len(f.parked) > 0 { // as if it were due by the clock that was set
						l.enqueue(f, f.nextDue())
					}
					l.wakeLocked()
					l.mu.Unlock()
					synctest.Wait()
				}
				check := func(copies int) {
					t.Helper()
					l.mu.Lock()
					defer l.mu.Unlock()
					if got := l.copies.Outstanding(); got != copies || f.waiting() != 1-copies || f.tracker.Pending != 1 {
						t.Fatalf("after %v: %d copies, %d parked, %d unfinished; want %d, %d, 1",
							time.Since(now), got, f.waiting(), f.tracker.Pending, copies, 1-copies)
					}
				}
				for range 20 {
					look()
					check(0)
				}
				if tt.copied > 0 {
					time.Sleep(tt.copied - time.Since(now) - time.Millisecond)
					look()
					check(0)
					time.Sleep(time.Millisecond)
					synctest.Wait()
					check(1)
				}
				l.close()
			})
		})
	}
}
