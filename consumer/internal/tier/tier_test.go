package tier

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
