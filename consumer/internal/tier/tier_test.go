package tier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// log is a partition's log, as a tier fetches it: missing offsets are gone.
type log map[int64]*kgo.Record

func (l log) fetch(_ context.Context, _ Partition, from, bytes int64) (got []*kgo.Record, next int64, err error) {
	for next = from; bytes > 0 && next < from+evictedBits; next++ {
		if r := l[next]; r != nil {
			got = append(got, r)
			bytes -= packedSize(packedLen(r))
		}
	}
	return got, next, nil
}

// evicting makes a tier with room for some twenty records, and parks many of them, due at random.
func evicting(t *testing.T, env *Env) (f *Tier, l *testLane, records log) {
	records = log{}
	if env.Fetch == nil {
		env.Fetch = records.fetch
	}
	env.Budget.limit = 20 * packedSize(packedLen(waitingFor(0, time.Now(), time.Now())))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go env.Budget.Run(ctx)
	f, l = newTier(t, env)
	now := time.Now()
	l.Lock()
	defer l.Unlock()
	f.Read([16]byte{}, 0, now)
	for offset := range int64(2000) {
		r := waitingFor(offset, now, now.Add(time.Minute+time.Duration(rand.Int64N(int64(time.Hour)))))
		records[offset] = r
		f.tracker.Deliver(offset)
		f.Admit(r, now)
	}
	f.Promote()
	return f, l, records
}

// serve has a worker run what is ready, for some time, and says how late each record is.
func serve(f *Tier, l *testLane, d time.Duration, run func(r *kgo.Record, late time.Duration)) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		for l.count() > 0 {
			l.work(f, func(r *kgo.Record) { run(r, time.Since(time.UnixMilli(f.dueOf(r, time.Now(), time.Now())))) })
			synctest.Wait()
		}
	}
}

// A tier holds many times its budget: what does not fit is evicted, and back when it is due.
func TestTier_HandsOutEvictedRecordsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := testEnv()
		f, l, all := evicting(t, env)
		ran := map[int64]bool{}
		serve(f, l, 62*time.Minute, func(r *kgo.Record, late time.Duration) {
			if late < 0 || late > time.Second || ran[r.Offset] {
				t.Fatalf("offset %d is handed out %v after it was due, or twice", r.Offset, late)
			}
			ran[r.Offset] = true
		})
		if len(ran) != len(all) || f.Waiting() != 0 || env.Budget.bytes != 0 {
			t.Errorf("%d of %d records were handed out, %d wait, %d bytes are counted", len(ran), len(all), f.Waiting(), env.Budget.bytes)
		}
		if env.Budget.Evicted() == 0 || env.Budget.Refetched() == 0 {
			t.Error("nothing was evicted")
		}
	})
}

// Evicted records that the log has no more are finished, and reported.
func TestTier_FinishesWhatTheLogHasNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := testEnv()
		var expired atomic.Int64
		env.Expired = func(_ string, _ int32, n int64) { expired.Add(n) }
		env.Fetch = log{}.fetch // it was truncated at its start
		f, l, all := evicting(t, env)
		ran := 0
		serve(f, l, 62*time.Minute, func(*kgo.Record, time.Duration) { ran++ })
		if n := expired.Load(); n == 0 || int(n)+ran != len(all) || f.tracker.Pending != ran {
			t.Errorf("%d records are reported as expired and %d ran of %d, %d are unfinished", n, ran, len(all), f.tracker.Pending)
		}
	})
}

// A fetch that fails is tried again, at longer and longer intervals. That the log is another one is
// for the lane to see to.
func TestTier_TriesFetchesAgain(t *testing.T) {
	t.Parallel()
	for range 5 { // the dues are random, and with them when the tries begin and end
		synctest.Test(t, func(t *testing.T) {
			env := testEnv()
			var failures atomic.Int64
			var other atomic.Bool // the log is another one
			env.Fetch = func(context.Context, Partition, int64, int64) ([]*kgo.Record, int64, error) {
				failures.Add(1)
				if other.Load() {
					return nil, 0, ErrOutOfLog
				}
				return nil, 0, errors.New("the broker is away")
			}
			_, l, _ := evicting(t, env)
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			// 6 while the wait grows to five seconds, then 24 within two minutes
			if n := failures.Load(); n < 20 || n > 32 || l.outOfLog.Load() != 0 {
				t.Fatalf("%d tries in two minutes, and %d that say that the log is another one", n, l.outOfLog.Load())
			}
			other.Store(true)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if l.outOfLog.Load() == 0 {
				t.Error("the lane does not learn that the log ends before its records")
			}
		})
	}
}

// A block that cannot be fetched makes no record of the others late.
func TestTier_FetchesBesideABrokenBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := testEnv()
		var records log
		env.Fetch = func(ctx context.Context, p Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
			if from < evictedBits {
				return nil, 0, errors.New("a batch is corrupt")
			}
			return records.fetch(ctx, p, from, bytes)
		}
		f, l, all := evicting(t, env)
		records = all
		ran := map[int64]bool{}
		serve(f, l, 62*time.Minute, func(r *kgo.Record, late time.Duration) {
			if late < 0 || late > time.Second && r.Offset >= evictedBits {
				t.Errorf("offset %d is handed out %v after it was due", r.Offset, late)
			}
			ran[r.Offset] = true
		})
		for offset := range all {
			if !ran[offset] && offset >= evictedBits {
				t.Errorf("offset %d is not handed out", offset)
			}
		}
	})
}

// Each pass brings some records, then fails. That is no reason to try less often.
func TestTier_BacksOffOnlyWithoutProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := testEnv()
		records, n := log{}, 0
		env.Fetch = func(ctx context.Context, p Partition, from, _ int64) ([]*kgo.Record, int64, error) {
			if n++; n%2 == 0 {
				return nil, 0, errors.New("the answer is lost")
			}
			return records.fetch(ctx, p, from, 1) // one record
		}
		f, l := newTier(t, env)
		l.Lock()
		for offset := range int64(100) {
			records[offset] = waitingFor(offset, time.Now(), time.Now())
			f.evicted.add(offset, time.Now().UnixMilli(), 100)
		}
		f.Promote()
		l.Unlock()
		time.Sleep(15 * time.Second)
		if got := l.count(); got != len(records) {
			t.Errorf("%d of %d records were fetched in 15 s, want all, 100 ms apart", got, len(records))
		}
	})
}

// A fetch paused because what it read is overdue and has no room. It goes on when there is some.
func TestTier_ReopensWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := testEnv()
		var resumed atomic.Int64
		env.Budget = NewBudget(10*packedSize(packedLen(bomb(0, 0))), func(lanes []Lane) { resumed.Add(int64(len(lanes))) })
		go env.Budget.Run(t.Context())
		records := log{}
		env.Fetch = records.fetch
		f, l := newTier(t, env)
		l.Lock()
		refused, n := false, int64(0)
		for ; !refused; n++ {
			records[n] = bomb(n, 0)
			refused = f.Admit(records[n], time.Now())
		}
		f.AwaitRoom()
		f.Promote()
		l.Unlock()
		synctest.Wait()
		if l.reopened != 0 {
			t.Fatal("the fetch goes on without room")
		}
		ran := int64(0)
		for ran < n {
			serve(f, l, time.Second, func(*kgo.Record, time.Duration) { ran++ })
		}
		if l.reopened != 1 || resumed.Load() != 1 {
			t.Errorf("reopened %d times, resumed %d times; want once", l.reopened, resumed.Load())
		}
	})
}

// Records of a third of the budget were evicted, and fetched again at once, 200 times a second
// until they were due: what evicted and what fetched did not agree about the room of a tier. Here
// records of a hundredth of the budget up to all of it wait in one tier or some, whose workers are
// busy at times.
func TestTier_EvictsNothingThatItWouldFetchAtOnce(t *testing.T) {
	t.Parallel()
	sizes := map[string]func(*rand.Rand) float64{
		"mixed":       func(r *rand.Rand) float64 { return 1 / (1 + 99*r.Float64()) },
		"3/8 to 1/2":  func(r *rand.Rand) float64 { return 0.375 + r.Float64()/8 },
		"small, huge": func(r *rand.Rand) float64 { return []float64{0.02, 0.6}[r.IntN(2)] },
	}
	for _, d := range []float64{1, 2, 2.5, 3, 4, 7, 20, 100} {
		sizes[fmt.Sprintf("1/%v", d)] = func(*rand.Rand) float64 { return 1 / d }
	}
	for name, tt := range cases.Cross(sizes, map[string]int{"1 tier": 1, "2 tiers": 2, "3 tiers": 3}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { countFetches(t, tt.B, tt.A, rand.New(rand.NewPCG(7, uint64(tt.B)))) })
		})
	}
}

func countFetches(t *testing.T, n int, size func(*rand.Rand) float64, rnd *rand.Rand) {
	const limit, records = 100_000, 60
	env := testEnv()
	env.Budget = NewBudget(limit, func([]Lane) {})
	logs := make([]log, n)
	var mu sync.Mutex
	fetched, runs := map[[2]int64]int{}, map[[2]int64]int{}
	env.Fetch = func(ctx context.Context, p Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
		// No two tiers end a fetch at the same time: which of them then comes first is a chance.
		time.Sleep(3*time.Millisecond + time.Duration(p.Partition)*370*time.Microsecond)
		mu.Lock()
		defer mu.Unlock()
		got, next, err := logs[p.Partition].fetch(ctx, p, from, bytes)
		for _, r := range got {
			fetched[[2]int64{int64(p.Partition), r.Offset}]++
		}
		return got, next, err
	}
	go env.Budget.Run(t.Context())
	tiers, lanes := make([]*Tier, n), make([]*testLane, n)
	for i := range tiers {
		tiers[i], lanes[i] = newTier(t, env)
		tiers[i].cfg.Partition = int32(i)
		logs[i] = log{}
	}
	began := time.Now()
	for at := range int64(records) {
		for i, f := range tiers {
			due := began.Add(time.Duration(rnd.Int64N(int64(30 * time.Second))))
			r := simRecord(at, began, due, 0)
			r.Value = make([]byte, max(0, int(size(rnd)*limit*16/17)-packedLen(r)-80))
			mu.Lock()
			logs[i][at] = r
			mu.Unlock()
			lanes[i].Lock()
			f.tracker.Deliver(at)
			f.Admit(r, began)
			f.Promote()
			lanes[i].Unlock()
		}
	}
	busy := time.Duration(rnd.Int64N(int64(10 * time.Second)))
	for time.Since(began) < 2*time.Minute {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		for i, l := range lanes {
			if i == 0 && time.Since(began)%(20*time.Second) < busy {
				continue
			}
			for l.count() > 0 {
				l.work(tiers[i], func(r *kgo.Record) { runs[[2]int64{int64(i), r.Offset}]++ })
				synctest.Wait()
			}
		}
	}
	most, sum := 0, 0
	for _, n := range fetched {
		most, sum = max(most, n), sum+n
	}
	if each := float64(sum) / float64(n*records); each > 4 || most > 12 {
		t.Errorf("a record is fetched %.1f times, the one that is fetched most %d times; want 4 and 12 at most", each, most)
	}
	if len(runs) != n*records || slices.Max(slices.Collect(maps.Values(runs))) > 1 {
		t.Errorf("%d of %d records ran, or one twice", len(runs), n*records)
	}
}

// A tier without room holds the first of the records that it has seen, whichever came first. None
// of them has to be fetched by itself because others, due later, were here already.
func TestTier_EvictsWhatIsDueLaterForWhatItFetches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		env := testEnv()
		f, l := newTier(t, env)
		p := env.Budget
		now := time.Now().UnixMilli()
		record := func(offset, due int64) *kgo.Record {
			m := headers.Meta{Group: "billing", NotBefore: time.UnixMilli(due)}
			return &kgo.Record{Offset: offset, Timestamp: time.UnixMilli(now), Headers: m.Append(nil)}
		}
		size := packedSize(packedLen(record(0, now)))
		holds := rapid.IntRange(1, 40).Draw(rt, "records that there is room for")
		p.limit = int64(holds) * size * 2 // of which it has half, once that much is in use
		p.bytes = p.limit / 2             // others'
		dues := rapid.SliceOfNDistinct(rapid.Int64Range(now+1, now+2*soon), holds, 100, rapid.ID).Draw(rt, "due")
		var got []*kgo.Record
		for i, due := range dues {
			if r := record(int64(i), due); i < holds {
				f.keep(pack(r, due))
			} else {
				f.evicted.add(r.Offset, due, size)
				got = append(got, r)
			}
		}
		l.Lock() // from its timer
		defer l.Unlock()
		// which it keeps: it would be fetched again at once
		before, next := p.bytes, f.parked[0].due
		f.restore(got, 0, int64(len(dues)), evictedBits)
		var held []int64
		for i := range f.parked {
			held = append(held, f.parked[i].due)
		}
		slices.Sort(held)
		slices.Sort(dues)
		isNext := func(due int64) bool { return due == next }
		if held, dues := slices.DeleteFunc(held, isNext), slices.DeleteFunc(dues, isNext); len(held) < holds-1 || !slices.Equal(held, dues[:len(held)]) {
			rt.Fatalf("%v are held, want the first %d of %v", held, holds-1, dues)
		}
		if p.bytes > before+size || f.evicted.n+f.inMemory != len(got)+holds {
			rt.Fatalf("%d bytes, %d evicted and %d kept; want %d and one record at most, %d in all", p.bytes, f.evicted.n, f.inMemory, before, len(got)+holds)
		}
	})
}

// siding writes to a tier as records fail, so that what lies together in the log is due together,
// but for the jitter. A record that was evicted is then fetched about once. Each tier read blocks
// ahead that it could not keep, and blocks of which it had kept a part. This is the bench of delays
// on a quarter of its partitions, in batches of some twenty records.
func TestTier_FetchesOnceWhatWasWrittenInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const records, rate, batch, size = 11_000, 312, 22, 394 // of each partition
		env := testEnv()
		env.MaxDue = 10_000
		env.Budget = NewBudget(16<<20, func([]Lane) {})
		go env.Budget.Run(t.Context())
		began, rnd := time.Now(), rand.New(rand.NewPCG(1, 1))
		one := packedSize(packedLen(simRecord(0, began, began, size)))
		var logs [4][]*kgo.Record
		var tiers [4]*Tier
		var lanes [4]*testLane
		var wire atomic.Int64 // with what lies in a batch below the offset that is asked for
		env.Fetch = func(_ context.Context, p Partition, from, bytes int64) (got []*kgo.Record, next int64, err error) {
			time.Sleep(3 * time.Millisecond)
			log, first := logs[p.Partition], from/batch*batch
			for next = first; next < records && (next == first || (next+batch-first)*one*115/100 <= bytes); {
				next = min(next+batch, records)
			}
			wire.Add((next - first) * one)
			return log[from:next], next, nil
		}
		for i := range tiers {
			tiers[i], lanes[i] = newTier(t, env)
			f := tiers[i]
			f.cfg.Partition, f.cfg.Delay = int32(i), time.Duration(90+30*(i%2))*time.Second
			f.cfg.Wait = f.cfg.Delay * 11 / 10
			for at := range int64(records) {
				failed := began.Add(15*time.Second - f.cfg.Delay + time.Duration(at)*time.Second/rate)
				due := failed.Add(f.cfg.Delay + time.Duration(rnd.Int64N(int64(f.cfg.Delay/10))))
				logs[i] = append(logs[i], simRecord(at, failed, due, size))
			}
		}
		for at := 0; at < records; at += 1000 { // the answers to the ordinary fetches
			for i, f := range tiers {
				lanes[i].Lock()
				for _, r := range logs[i][at:min(at+1000, records)] {
					f.tracker.Deliver(r.Offset)
					f.Admit(r, time.Now())
				}
				f.Promote()
				lanes[i].Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		}
		ran, late := 0, time.Duration(0)
		for time.Since(began) < 2*time.Minute {
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			for i, l := range lanes {
				for l.count() > 0 {
					l.work(tiers[i], func(r *kgo.Record) {
						ran++
						late = max(late, time.Since(time.UnixMilli(tiers[i].dueOf(r, time.Now(), time.Now()))))
					})
				}
			}
		}
		if ran != len(tiers)*records || late > time.Second {
			t.Errorf("%d of %d records ran, %v late", ran, len(tiers)*records, late)
		}
		evicted := float64(env.Budget.Evicted())
		if again, sent := float64(env.Budget.Refetched())/evicted, float64(wire.Load())/evicted; again > 1.1 || sent > 1.1 {
			t.Errorf("an evicted byte is fetched %.3f times, and sent %.3f times; want about once", again, sent)
		}
	})
}

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

// Tiers of several lanes share a budget that has room for a few of their records. Records are
// parked, evicted, fetched again and lost to retention; fetches pause and fail; lanes are blocked
// and revoked. Each record runs once under each owner, never early, and in time unless something
// failed. The memory stays within the budget.
func TestTier_SharesABudgetWithOthers(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { shareBudget(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// written is how long records are written to the simulated tiers, and the longest that they wait.
const written = 5 * time.Minute

// simTopicID is the id of the simulated tiers' topic.
var simTopicID = [16]byte{1}

// simTier is a tier, its partition, and the loops that read it and run its records.
type simTier struct {
	*Tier
	lane *testLane
	mu   sync.Mutex // guards log
	log  log
	dues []int64 // of all that was ever written, in Unix milliseconds
	read int64   // up to where the log is read
	full bool    // its fetch is paused
	ran  map[int64]bool
	late time.Duration
	idle bool // no worker runs
}

func shareBudget(t *testing.T, rnd *rand.Rand) {
	const perTier = 10 // records that there has to be room for, so that they run in time
	largest := packedSize(packedLen(simRecord(0, time.Now(), time.Now(), 1000)))
	holds := 5 + rnd.IntN(40)
	fails, expires, revokes, blocked := rnd.IntN(4) == 0, rnd.IntN(4) == 0, rnd.IntN(4) == 0, rnd.IntN(3) == 0
	var expired atomic.Int64
	tiers := make([]*simTier, 1+rnd.IntN(4))
	env := testEnv()
	env.Budget = NewBudget(int64(holds)*largest, func([]Lane) {})
	env.MaxDue = []int{5, 1000}[rnd.IntN(2)]
	env.Expired = func(_ string, _ int32, n int64) { expired.Add(n) }
	env.Fetch = func(ctx context.Context, p Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		if p.ID != simTopicID {
			t.Errorf("a fetch names the topic %v", p.ID)
		}
		if fails && rand.IntN(5) == 0 {
			return nil, 0, errors.New("the broker is away")
		}
		s := tiers[p.Partition]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.log.fetch(ctx, p, from, bytes)
	}
	go env.Budget.Run(t.Context())
	for i := range tiers {
		tiers[i] = &simTier{log: log{}, ran: map[int64]bool{}}
		tiers[i].own(t, env, i)
	}
	tiers[0].idle = blocked

	began := time.Now()
	for time.Since(began) < 2*written+time.Minute {
		writes := time.Since(began) < written
		for i, s := range tiers {
			s.lane.Lock()
			if writes && rnd.IntN(20) == 0 {
				s.write(rnd)
			}
			if expires && writes && rnd.IntN(200) == 0 {
				s.mu.Lock()
				for at := range s.read / 2 {
					delete(s.log, at)
				}
				s.mu.Unlock()
			}
			s.poll()
			s.lane.Unlock()
			for n := rnd.IntN(20); n > 0 && !s.idle && s.lane.count() > 0; n-- {
				s.run(t)
			}
			if revokes && writes && !expires && rnd.IntN(200) == 0 {
				s.lane.Lock()
				s.lane.closing = true
				s.Drop()
				s.lane.ready = nil
				s.lane.Unlock()
				s.own(t, env, i)
			}
		}
		synctest.Wait()
		checkBudget(t, env.Budget, tiers, largest)
		time.Sleep(250 * time.Millisecond)
	}
	for i, s := range tiers {
		if !fails && !revokes && holds >= perTier*len(tiers) && s.late > 5*time.Second {
			t.Errorf("a record of tier %d of %d ran %v after it was due; the budget has room for %d", i, len(tiers), s.late, holds)
		}
	}

	tiers[0].idle = false // what has waited for it follows
	for range 3 * 60 * 4 {
		for _, s := range tiers {
			s.lane.Lock()
			s.poll()
			s.lane.Unlock()
			for s.lane.count() > 0 {
				s.run(t)
			}
		}
		synctest.Wait()
		time.Sleep(250 * time.Millisecond)
	}
	missing := int64(0)
	for i, s := range tiers {
		missing += int64(len(s.dues) - len(s.ran))
		if s.full || int(s.read) != len(s.dues) || s.Waiting() > 0 || s.inMemory > 0 || s.tracker.Pending > 0 {
			t.Errorf("tier %d is paused: %v, after %d of %d records; %d wait, %d are in memory, %d unfinished",
				i, s.full, s.read, len(s.dues), s.Waiting(), s.inMemory, s.tracker.Pending)
		}
	}
	if n := expired.Load(); missing != n {
		t.Errorf("%d records did not run, %d are reported as expired", missing, n)
	}
	b := env.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes != 0 || len(b.holders)+len(b.starved)+len(b.paused) > 0 {
		t.Errorf("%d bytes are counted at the end, %d tiers hold some, %d are starved, %d paused", b.bytes, len(b.holders), len(b.starved), len(b.paused))
	}
}

func simRecord(offset int64, at, due time.Time, size int) *kgo.Record {
	r := waitingFor(offset, at, due)
	r.Value = make([]byte, size)
	return r
}

// own gives the partition to another lane, which reads on from the committed floor.
func (s *simTier) own(t *testing.T, env *Env, partition int) {
	var floor int64
	if s.Tier != nil {
		floor = s.tracker.Floor()
	}
	s.Tier, s.lane = newTier(t, env)
	s.cfg.Partition = int32(partition)
	*s.tracker = offsets.New(floor, floor)
	s.read, s.full = floor, false
	for at := range s.ran {
		if at >= floor {
			delete(s.ran, at)
		}
	}
}

// write appends records to the log.
func (s *simTier) write(rnd *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := []time.Duration{10 * time.Second, written}[rnd.IntN(2)]
	for range rnd.IntN(40) {
		at, now := int64(len(s.dues)), time.Now()
		due := now.Add(time.Duration(rnd.Int64N(int64(longest))))
		s.log[at] = simRecord(at, now, due, rnd.IntN(1000))
		s.dues = append(s.dues, due.UnixMilli())
	}
}

// poll reads some records of the log, unless the fetch is paused.
func (s *simTier) poll() {
	if s.full = s.full && s.lane.reopened == 0; s.full {
		return
	}
	s.lane.reopened = 0
	s.mu.Lock()
	defer s.mu.Unlock()
	now, refused := time.Now(), false
	s.Read(simTopicID, s.read, now)
	for n := 20; n > 0 && int(s.read) < len(s.dues); n-- {
		s.tracker.Deliver(s.read)
		refused = s.Admit(s.log[s.read], now)
		s.read++
	}
	s.Promote()
	if s.full = refused; s.full {
		s.AwaitRoom()
	}
}

// run has a worker run the first ready record.
func (s *simTier) run(t *testing.T) {
	s.lane.work(s.Tier, func(r *kgo.Record) {
		late := time.Since(time.UnixMilli(s.dues[r.Offset]))
		if late < 0 || s.ran[r.Offset] {
			t.Errorf("offset %d runs %v after it is due, or again", r.Offset, late)
		}
		s.ran[r.Offset] = true
		s.late = max(s.late, late)
		s.lane.Lock()
		defer s.lane.Unlock()
		s.tracker.Finish(r.Offset)
	})
}

// checkBudget checks the books while nothing goes on.
func checkBudget(t *testing.T, b *Budget, tiers []*simTier, largest int64) {
	t.Helper()
	var bytes int64
	for i, s := range tiers {
		s.lane.Lock()
		var own int64
		for j := range s.parked {
			own += s.parked[j].size()
		}
		for _, it := range s.lane.ready {
			own += it.size
		}
		ready, waits, unfinished := len(s.lane.ready), s.Waiting(), s.tracker.Pending
		n, counted, countedBytes := len(s.parked)+ready, s.inMemory, s.inMemoryBytes
		s.lane.Unlock()
		if own != countedBytes || n != counted || waits+ready != unfinished {
			t.Fatalf("tier %d has %d records of %d bytes in memory, and counts %d of %d; %d wait of %d unfinished ones",
				i, n, own, counted, countedBytes, waits, unfinished)
		}
		if ready > min(s.env.MaxDue, maxReady) {
			t.Fatalf("%d records of tier %d are ready", ready, i)
		}
		bytes += own
	}
	// Each tier has room for its next record. Beyond that, two tiers may take the same room at the
	// same time, and evictions leave each tier its share of what is due soon.
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes != b.bytes || bytes > b.limit+b.limit/2+largest*int64(len(tiers)) {
		t.Fatalf("%d bytes are in memory, %d are counted; the budget is %d", bytes, b.bytes, b.limit)
	}
}

// A record was admitted by its packed size and unpacked when it was due, long before a worker had
// it. Thousands of tiny headers took several times the budget then.
func TestBudget_HoldsWhileRecordsWaitForAWorker(t *testing.T) {
	t.Parallel()
	env := testEnv()
	f, l := newTier(t, env)
	b := env.Budget
	offset := int64(0)
	for f.admit(bomb(offset, 2000), 1) {
		offset++
	}
	f.evicted = evictedIndex{}
	l.Lock()
	f.Promote()
	l.Unlock()
	if f.lane.Ready() != int(offset) || offset < 40 {
		t.Fatalf("%d of %d records are ready, want all, and some dozens", f.lane.Ready(), offset)
	}
	if b.bytes > b.limit {
		t.Errorf("%d bytes are kept of a budget of %d", b.bytes, b.limit)
	}
	for len(l.ready) > 0 {
		before, it := b.bytes, l.ready[0]
		packed := it.size
		l.work(f, func(*kgo.Record) {
			if more := b.bytes - before; more < 2000*40 || it.size != packed+more {
				t.Fatalf("%d bytes of %d packed ones count %d more with a worker, want those of the headers", it.size, packed, more)
			}
		})
	}
	if b.bytes != 0 || f.inMemoryBytes != 0 || len(b.holders) != 0 {
		t.Errorf("%d bytes by %d tiers are left when all have run, %d of this one; want none", b.bytes, len(b.holders), f.inMemoryBytes)
	}
}
