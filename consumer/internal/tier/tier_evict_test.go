package tier

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/cases"
)

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
