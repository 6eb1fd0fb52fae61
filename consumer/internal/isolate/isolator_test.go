package isolate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/internal/cases"
)

// A unit of the lane may have many records, of which the one that is to run alone is a late one. So
// the lane waits as all others do, until no handler runs.
func TestIsolator_HoldsItsOwnLaneWhileItGathers(t *testing.T) {
	t.Parallel()
	type one struct {
		Lane
		_ byte
	}
	l, other := Lane(&one{}), Lane(&one{})
	var s Isolator
	if s.Holds(l) {
		t.Error("a lane waits, and no record runs alone")
	}
	s.alone.Store(&l)
	for _, gathers := range []bool{true, false} {
		if s.gathers.Store(gathers); s.Holds(l) != gathers || !s.Holds(other) {
			t.Errorf("handlers run: %v; its lane waits: %v, another one: %v", gathers, s.Holds(l), s.Holds(other))
		}
	}
}

// suspects is what a commit says of n of them, of which those of singly run one by one.
func suspects(n int64, singly ...offsets.Span) offsets.Evidence {
	return offsets.Evidence{Process: 1, Deaths: 2, Suspect: n, Singly: singly}
}

// through has all suspects below n run one by one.
func through(n int64) offsets.Span { return offsets.Span{Last: n - 1} }

func each(d time.Duration) func(int64) time.Duration {
	return func(int64) time.Duration { return d }
}

// but has one record take another time.
func but(at int64, takes, others time.Duration) func(int64) time.Duration {
	return func(offset int64) time.Duration {
		if offset == at {
			return takes
		}
		return others
	}
}

// Whatever runs, and however commits end: a process that dies charges none but records that run,
// and all records run soon. play checks the former at each start.
func TestIsolator_ChargesOnlyWhatRuns(t *testing.T) {
	t.Parallel()
	const slow = 100 * time.Millisecond
	// failing has commits fail that begin within a time, once some were accepted.
	failing := func(w *world, err error, from, to time.Duration) {
		w.commit = func([]Lane) error {
			if d := time.Since(w.began); d >= from && d < to {
				return err
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		build   func(*world)
		within  time.Duration // all that take a short time have run
		commits int           // at most; 0 for any number
	}{
		"groups of two lanes": {func(w *world) {
			w.lane(3, suspects(3), each(slow))
			w.lane(3, suspects(3), each(time.Second))
		}, 5 * time.Second, 20},
		"one by one, beside what is no suspect": {func(w *world) {
			w.lane(5, suspects(3, through(3)), each(slow))
			w.lane(500, offsets.Evidence{}, each(slow))
		}, 2 * time.Second, 0},
		"a handler that takes nearly as long as it may": {func(w *world) {
			w.lane(20, suspects(20, through(20)), each(slow))
			w.lane(3, offsets.Evidence{}, each(timeout-time.Second))
		}, 12 * time.Second, 0},
		"a handler that ignores its timeout, beside suspects": {func(w *world) {
			w.lane(20, suspects(20, through(20)), each(slow))
			w.lane(2, offsets.Evidence{}, but(0, forever, 8*time.Second))
		}, 20 * time.Second, 0},
		"a handler that ignores its timeout, beside long ones": {func(w *world) {
			w.lane(20, suspects(20, through(20)), each(slow))
			w.lane(1, offsets.Evidence{}, each(forever))
			w.lane(10, offsets.Evidence{}, each(9*time.Second)).width = 1
		}, 20 * time.Second, 0},
		"handlers that do not end": {func(w *world) {
			w.lane(2, suspects(2, through(2)), each(slow))
			w.former = func() (running, late bool) { return true, false }
		}, 3 * time.Minute, 0},
		"one alone ignores its timeout": {func(w *world) {
			w.lane(20, suspects(20, through(20)), but(7, forever, slow))
			w.lane(300, suspects(300, through(300)), each(slow))
		}, 50 * time.Second, 1000},
		"two of a group ignore their timeouts": {func(w *world) {
			w.lane(20, suspects(20), func(offset int64) time.Duration {
				if offset == 5 || offset == 9 {
					return forever
				}
				return slow
			})
			w.lane(20, suspects(20), each(slow))
		}, 30 * time.Second, 0},
		"one alone comes back while a group waits for workers": {func(w *world) {
			w.lane(640, suspects(640, through(1)), but(0, timeout+2*time.Second, 1500*time.Millisecond)).width = 2
		}, 9 * time.Minute, 0},
		"no broker as one alone ends": {func(w *world) {
			w.lane(3, suspects(3, through(3)), each(time.Second))
			w.lane(200, offsets.Evidence{}, each(slow))
			failing(w, errUnsent, 500*time.Millisecond, 30*time.Second)
		}, 40 * time.Second, 0},
		"no answer to what names one alone": {func(w *world) {
			w.lane(3, suspects(3, through(3)), each(time.Second))
			w.lane(200, offsets.Evidence{}, each(slow))
			failing(w, errLost, 5*time.Millisecond, 30*time.Second)
		}, 40 * time.Second, 0},
		"no answer to what names one alone, beside others": {func(w *world) {
			one := w.lane(3, suspects(3, through(3)), each(time.Second))
			w.lane(60, offsets.Evidence{}, each(slow)).width = 1
			w.commit = func([]Lane) error {
				if one.window.suspects != nil && one.window.suspects.Alone != nil && time.Since(w.began) < 5*time.Second {
					return errLost
				}
				return nil
			}
		}, 40 * time.Second, 0},
		"a refusal as one alone ends": {func(w *world) {
			for range 3 {
				w.lane(3, suspects(3, through(3)), each(time.Second))
			}
			failing(w, errors.New("not now"), 500*time.Millisecond, 3*time.Second)
		}, 40 * time.Second, 0},
		"a lane whose commits are refused": {func(w *world) {
			refused := w.lane(3, suspects(3, through(3)), each(forever)).lane
			w.lane(50, suspects(50, through(50)), each(slow))
			w.commit = func(of []Lane) error {
				if slices.Contains(of, Lane(refused)) {
					return errors.New("never")
				}
				return nil
			}
		}, time.Minute, 1000},
		"a letter that cannot be written": {func(w *world) {
			w.copies = forever
			condemned := suspects(4)
			condemned.Condemned = []offsets.Alone{{Offset: 3}}
			w.lane(10, condemned, func(offset int64) time.Duration {
				if offset >= 3 { // none overtakes a suspect
					return forever
				}
				return slow
			})
			w.lane(40, suspects(40, through(4)), each(slow))
			w.lane(40, offsets.Evidence{}, each(slow))
		}, 30 * time.Second, 0},
		"a letter that takes a second": {func(w *world) {
			w.copies = time.Second
			condemned := suspects(4)
			condemned.Condemned = []offsets.Alone{{Offset: 3}}
			w.lane(10, condemned, each(slow))
			w.lane(10, suspects(10), each(slow))
		}, 5 * time.Second, 0},
		"lanes in order run at the same time": {func(w *world) {
			for range 8 {
				w.lane(50, suspects(50), each(slow)).Ordered = true
			}
		}, 12 * time.Second, 0},
		"a slow one now and then": {func(w *world) {
			w.lane(1600, suspects(1600), func(offset int64) time.Duration {
				if offset%100 == 99 {
					return time.Second
				}
				return time.Millisecond
			})
		}, 20 * time.Second, 0},
		"a lane that is paused": {func(w *world) {
			w.lane(3, suspects(3, through(3)), each(forever)).lane.keeps = true
			w.lane(20, suspects(20, through(20)), each(slow))
		}, 10 * time.Second, 0},
		"a lane that was closed, whose handlers run": {func(w *world) {
			w.lane(20, suspects(20, through(20)), each(slow))
			w.former = func() (running, late bool) { d := time.Since(w.began); return d < 3*time.Second, d >= 3*time.Second }
		}, 10 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, 10*time.Minute, c.build)
			if w.last > c.within || c.commits > 0 && w.commits > c.commits {
				t.Errorf("all have run after %v and %d commits, want %v and %d at most", w.last, w.commits, c.within, c.commits)
			}
		})
	}
}

// The end of a process waits neither for a letter that cannot be written, nor for a handler.
func TestIsolator_EndsBesideWhatDoesNot(t *testing.T) {
	t.Parallel()
	for _, condemned := range [][]offsets.Alone{{{Offset: 0}}, nil} {
		play(t, 2*time.Second, func(w *world) {
			w.copies = forever
			said := suspects(3, through(3))
			said.Condemned = condemned
			w.lane(3, said, each(forever))
		})
	}
}

// What ChargesOnlyWhatRuns says, of random lanes, handlers and answers.
func TestIsolator_RandomSuspects(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(50) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			play(t, 30*time.Minute, func(w *world) {
				w.takes = time.Duration(rnd.IntN(100)) * time.Millisecond
				for range 1 + rnd.IntN(4) {
					var l *laneModel
					for i := range 1 + rnd.IntN(2) {
						n := int64(rnd.IntN(40))
						var said offsets.Evidence
						if at := n * int64(rnd.IntN(3)) / 2; at > 0 {
							from := rnd.Int64N(at)
							said = suspects(at, offsets.Span{First: from, Last: from + rnd.Int64N(at-from)})
							if said.Singly = said.Singly[:rnd.IntN(2)]; rnd.IntN(4) == 0 {
								said.Condemned = []offsets.Alone{{Offset: rnd.Int64N(at)}}
							}
						}
						times := make([]time.Duration, n)
						for offset := range times {
							times[offset] = time.Duration(rnd.ExpFloat64() * float64(300*time.Millisecond))
							if rnd.IntN(50) == 0 {
								times[offset] = []time.Duration{timeout - time.Second, timeout + time.Second, timeout + time.Minute, 2 * time.Minute}[rnd.IntN(4)]
							}
						}
						takes := func(offset int64) time.Duration { return times[offset] }
						if i == 0 {
							f := w.lane(n, said, takes)
							l, f.Ordered, f.width = f.lane, rnd.IntN(3) == 0, 1+rnd.IntN(10)
						} else {
							l.feed(n, said, true, takes)
						}
					}
				}
				w.copies = time.Duration(rnd.IntN(3000)) * time.Millisecond
				kinds := []error{errUnsent, errLost, errors.New("not now")}[:2+rnd.IntN(2)]
				var until time.Time
				var err error
				w.commit = func([]Lane) error {
					switch {
					case time.Now().Before(until):
						return err
					case w.commits > 2 && rnd.IntN(20) == 0:
						err, until = kinds[rnd.IntN(len(kinds))], time.Now().Add(time.Duration(rnd.IntN(20))*time.Second)
					}
					return nil
				}
			})
		})
	}
}
