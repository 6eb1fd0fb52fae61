package askqueue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sidingkafka/siding/internal/cases"
)

// The queue has each lane that asked since it was last taken, once: also one that asks while the
// commit of an earlier ask is under way. A taker is woken for every ask, and for no kept lane.
func TestQueue_AgreesWithAModel(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q, want, wakes := New[int](), map[int]bool{}, false
		for step := range 500 {
			switch l := rnd.IntN(5); rnd.IntN(4) {
			case 0, 1:
				q.Add(l)
				want[l], wakes = true, true
			case 2:
				q.Keep(l)
				want[l] = true
			default:
				select {
				case <-q.Asked():
					if !wakes {
						t.Fatalf("seed %d, step %d: there was no call of Ask, and the taker is woken", seed, step)
					}
				default:
					if wakes {
						t.Fatalf("seed %d, step %d: %v ask, and the taker is not woken", seed, step, want)
					}
				}
				wakes = false
				got := q.Take()
				for _, l := range got {
					if !want[l] {
						t.Fatalf("seed %d, step %d: the queue has %v, while %v ask, each once", seed, step, got, want)
					}
					delete(want, l)
				}
				if len(want) > 0 {
					t.Fatalf("seed %d, step %d: of those that asked, the queue lacks %v", seed, step, want)
				}
			}
		}
	}
}

// An ask is not lost between the signal and the taking: whichever lanes ask while others are taken,
// each is taken after its last ask, and none waits for a further one. No lane is passed over for
// another: taking takes all.
func TestQueue_TakesEveryAskWhateverComesMeanwhile(t *testing.T) {
	t.Parallel()
	const lanes, asks = 4, 1000
	q := New[int]()
	for l := range lanes {
		go func() {
			for n := range asks {
				q.Add(n*lanes + l)
			}
		}()
	}
	var got []int
	for len(got) < lanes*asks {
		<-q.Asked() // a lost signal ends the test by its timeout
		got = append(got, q.Take()...)
	}
	slices.Sort(got)
	if all := slices.Compact(slices.Clone(got)); len(all) != len(got) {
		t.Errorf("%d of %d asks were taken twice", len(got)-len(all), lanes*asks)
	}
}
