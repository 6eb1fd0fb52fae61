package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
)

// A bucket has half a second of runs, and twelve at least.
func TestMeasure_Buckets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		every time.Duration
		runs  int
		want  int64 // buckets
	}{
		{time.Millisecond, 1000, 2},
		{100 * time.Millisecond, 120, 10},
		{time.Second, 120, 10},
		{time.Minute, 36, 3},
		{0, 10000, 1},
	} {
		var m measure
		for i := range tt.runs {
			m.begin(time.Duration(i)*tt.every, 1)
		}
		if m.current != tt.want {
			t.Errorf("%d runs, one each %v: %d buckets, want %d", tt.runs, tt.every, m.current, tt.want)
		}
	}
}

// Runs that take a minute are counted, though many buckets begin meanwhile.
func TestMeasure_SlowRuns(t *testing.T) {
	t.Parallel()
	const takes = time.Minute
	var m measure
	type run struct {
		bucket int64
		ends   time.Duration
	}
	var running []run
	for now := time.Duration(0); now < 5*time.Minute; now += 50 * time.Millisecond {
		for len(running) > 0 && running[0].ends <= now {
			m.end(running[0].bucket, Failed, 1)
			running = running[1:]
		}
		running = append(running, run{m.begin(now, 1), now + takes})
		runs, failed, bad, full := m.sum(now)
		if now > 2*time.Minute && (runs < evidence || failed != runs || bad != runs || !full) {
			t.Fatalf("after %v: %d of %d runs failed, full is %v", now, failed, runs, full)
		}
	}
}

// A bucket of which a run never returns counts for nothing, and the others go on.
func TestMeasure_HangingRun(t *testing.T) {
	t.Parallel()
	var m measure
	for i := range 6000 {
		now := time.Duration(i) * 100 * time.Millisecond
		n := m.begin(now, 1)
		if i > 0 {
			m.end(n, Failed, 1)
		}
	}
	if runs, failed, _, full := m.sum(600 * time.Second); runs != failed || runs > 2*evidence || !full {
		t.Errorf("%d of %d runs failed, full is %v", failed, runs, full)
	}
	if runs, _, _, _ := m.sum(2 * time.Hour); runs != 0 {
		t.Errorf("%d runs count after two hours", runs)
	}
}

// The sum is what a list of all runs gives.
func TestMeasure_AgreesWithAList(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var m measure
		var now time.Duration
		began, ended, bad := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
		var running []int64
		for range 1500 {
			now += time.Duration(rng.IntN(200)) * time.Millisecond
			if n := len(running); n > 0 && rng.IntN(5) > 1 {
				i := rng.IntN(n)
				o := Outcome(rng.IntN(4))
				m.end(running[i], o, 1)
				switch {
				case o == Void:
					began[running[i]]--
				case o.bad():
					bad[running[i]]++
					fallthrough
				default:
					ended[running[i]]++
				}
				running[i] = running[n-1]
				running = running[:n-1]
			} else {
				n := m.begin(now, 1)
				began[n]++
				running = append(running, n)
			}
			var wantRuns, wantBad int64
			found := 0
			for n := m.current; n > m.current-kept && n > 0 && found < buckets; n-- {
				if ended[n] > 0 && float64(ended[n]) >= 0.95*float64(began[n]) {
					wantRuns, wantBad = wantRuns+ended[n], wantBad+bad[n]
					found++
				}
			}
			if runs, _, bad, full := m.sum(now); runs != wantRuns || bad != wantBad || full != (found == buckets) {
				t.Fatalf("seed %d at %v: %d bad of %d, %v; want %d of %d in %d buckets", seed, now, bad, runs, full, wantBad, wantRuns, found)
			}
		}
	}
}

// What failed for long and is back is not held, however the next one fails.
func TestMeasure_NewestRunsDecide(t *testing.T) {
	t.Parallel()
	for good, want := range map[int64]bool{1: true, 10: true, 28: false} {
		var m measure
		now := time.Duration(0)
		for range buckets - 1 {
			m.end(m.begin(now, 200), Failed, 200)
			now += bucketTime
		}
		m.end(m.begin(now, good), Good, good)
		m.end(m.begin(now, 250-good), Failed, 250-good)
		if _, _, ok := m.outweighs(now, 0.95); ok != want {
			t.Errorf("%d of the last 250 runs were good: the topic is held: %v, want %v", good, ok, want)
		}
	}
}

// Runs that are none, as those of suspects with a defect, hide no bucket before them.
func TestMeasure_VoidRunsHideNothing(t *testing.T) {
	t.Parallel()
	var m measure
	now := time.Duration(0)
	for range buckets {
		m.end(m.begin(now, 20), Failed, 20)
		now += bucketTime
		m.end(m.begin(now, 20), Void, 20)
		now += bucketTime
	}
	if runs, failed, _, full := m.sum(now); runs != 20*buckets || failed != runs || !full {
		t.Errorf("%d of %d runs failed, full is %v", failed, runs, full)
	}
}
