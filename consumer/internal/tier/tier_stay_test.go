package tier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func TestTier_HandsOutWhenDueOrBeforeRetention(t *testing.T) {
	t.Parallel()
	const day, ages = 24 * time.Hour, 50 * 365 * 24 * time.Hour
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// the due time of what redrive wrote
	never := -time.Duration(now.UnixMilli()) * time.Millisecond
	for name, tt := range map[string]struct {
		due, written, read time.Duration // from now
		keeps              time.Duration // of the topic; 0 is the default, 7 days
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
		f := kept(tt.keeps)
		f.cfg.Wait, f.cfg.MaxWait = 5500*time.Millisecond, time.Hour
		r := waitingFor(0, now.Add(tt.written), now.Add(tt.due))
		if got := time.UnixMilli(f.dueOf(r, now.Add(tt.read), now)).Sub(now); got != tt.want {
			t.Errorf("%s: handed out after %v, want %v", name, got, tt.want)
		}
	}
}

// An evicted record is fetched again, and has been here since it was read first. Of that the tier
// keeps a few marks. They may say that it was read a little later than it was, and never earlier:
// earlier, it would be written again too soon.
func TestTier_KnowsToAnEighthWhenARecordWasRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := kept(time.Hour)
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
func TestTier_PutsOffOnceWhatWasReadBeforeARetention(t *testing.T) {
	t.Parallel()
	f := kept(-time.Second) // for ever
	read := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// the broker's clock is behind
	r := waitingFor(0, read.Add(-1000*time.Hour), read.Add(6*24*time.Hour))
	f.markRead(r.Offset, read)
	f.env.Retention = kept(time.Hour).env.Retention
	least, _, _ := f.maxStay()
	for now := read; now.Sub(read) < 2*time.Hour; now = now.Add(time.Minute) {
		if at := time.UnixMilli(f.dueOf(r, f.readAt(r.Offset, now), now)).Sub(read); at > least+least/readSteps {
			t.Fatalf("after %v it is put off to %v after it was read, want %v and an eighth at most", now.Sub(read), at, least)
		}
	}
}

// The host's clock is set while a record is with a worker, or while it waits: the worker finds a
// record that is not due. It is parked again in memory; it is to be written again only when the
// least stay is over, by the monotonic clock.
func TestTier_ParksAgainWhatIsNotDue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		due     time.Duration
		written time.Duration
		copied  time.Duration // it is written again after so long; 0 for never
	}{
		"set back by an hour": {due: time.Hour},
		"set back by days":    {due: 6 * 24 * time.Hour, copied: 84 * time.Hour},
		// to an eighth
		"set forward, and the broker is behind": {due: 6 * 24 * time.Hour, written: -1000 * time.Hour, copied: 21 * time.Hour * 9 / 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, l := newTier(t, testEnv())
				now := time.Now()
				l.Lock()
				f.Read([16]byte{}, 0, now)
				f.Admit(waitingFor(0, now.Add(tt.written), now.Add(tt.due)), now)
				f.Promote()
				l.Unlock()
				reparks := func() (parked bool) {
					l.Lock()
					for len(f.parked) > 0 { // as if it were due by the clock that was set
						l.Enqueue(f.popDue())
					}
					l.Unlock()
					l.work(f, func(r *kgo.Record) { parked = f.Repark(r, time.Now()) })
					return parked
				}
				for range 20 {
					if !reparks() {
						t.Fatalf("it is to be written again after %v", time.Since(now))
					}
				}
				if tt.copied == 0 {
					return
				}
				time.Sleep(tt.copied - time.Since(now) - time.Millisecond)
				if !reparks() {
					t.Fatal("it is to be written again before its least stay is over")
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if n := l.count(); n != 1 || reparks() {
					t.Errorf("after %v it is parked again, %d are ready; want that it is written again", tt.copied, n)
				}
			})
		})
	}
}

// kept is a tier whose topic keeps records for so long; 0 is for the default.
func kept(keeps time.Duration) *Tier {
	env := testEnv()
	if keeps != 0 {
		env.Retention = func(string, time.Duration) time.Duration { return keeps }
	}
	return New(env, &testLane{}, Config{Topic: "orders.retry.5s", Delay: 5 * time.Second, Wait: 5 * time.Second}, nil)
}
