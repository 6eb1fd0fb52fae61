package logthrottle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
)

type kind struct{ what, class string }

// stormLog is a log of the lines of storms.
type stormLog struct {
	mu    sync.Mutex
	lines []string
	sum   int
	total int // of the storms that ended
}

func (l *stormLog) storms() *Storms[kind, int] {
	began := time.Now()
	return &Storms[kind, int]{
		Rest: func(k kind) kind { return kind{what: k.what, class: "other"} },
		Report: func(k kind, t Tally[int]) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.sum += t.Events
			text := fmt.Sprintf("%v %s %d", time.Since(began), k.class, t.Events)
			if t.Over() {
				l.total += t.Total
				text = fmt.Sprintf("%v %s over, %d in %v", time.Since(began), k.class, t.Total, t.Lasted)
			}
			l.lines = append(l.lines, text)
		},
	}
}

// sums returns the number of lines, and of the events that they count.
func (l *stormLog) sums() (lines, events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines), l.sum
}

func (l *stormLog) count() int {
	lines, _ := l.sums()
	return lines
}

// kept returns the number of kinds in memory.
func (q *Storms[K, V]) kept() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.kinds)
}

func add[K comparable](q *Storms[K, int], k K, example int) { q.Add(time.Now(), &k, &example) }

// 5,000 dead letters left one line with the number 1: the number of the others came only with a
// later one.
func TestStorms_TellsEveryEventThoughNoneFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := stormLog{}
		q := log.storms()
		for i := range 5000 {
			add(q, kind{"record", "a"}, i)
			if i%1000 == 0 {
				add(q, kind{"record", "b"}, i)
			}
			time.Sleep(5 * time.Millisecond) // 25 s in all
			if i == 0 {
				time.Sleep(time.Millisecond) // so that no event comes just when a line is due
			}
		}
		add(q, kind{"record", "single"}, 0)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{
			"0s a 1", "0s b 1", "10s a 1999", "10s b 1", "20s a 2000", "20s b 2", "25.001s single 1", "30s a 1000", "30s b 1",
			"40s a over, 5000 in 24.996s", "40s b over, 5 in 20.001s",
		}
		slices.Sort(log.lines)
		if !slices.Equal(log.lines, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(log.lines, "\n"), strings.Join(want, "\n"))
		}
		if n := q.kept(); n > 0 || !q.armed.IsZero() {
			t.Errorf("%d kinds are kept", n)
		}
	})
}

// Whatever comes when, and whenever the end comes, the numbers of the lines add up; and neither the
// lines nor the memory grow with the number of kinds.
func TestStorms_LinesAddUp(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(50) {
		synctest.Test(t, func(t *testing.T) {
			log := stormLog{}
			q := log.storms()
			rnd := rand.New(rand.NewPCG(seed, 15))
			kinds := 1 + rnd.IntN(3*maxKinds)
			events := 0
			for range rnd.IntN(5000) {
				events++
				add(q, kind{"record", fmt.Sprint(rnd.IntN(kinds))}, 0)
				if n := q.kept(); n > maxKinds+1 {
					t.Fatalf("seed %d: %d kinds are kept", seed, n)
				}
				switch rnd.IntN(50) {
				case 0:
					time.Sleep(time.Duration(rnd.Int64N(int64(30 * time.Second))))
				case 1:
					time.Sleep(time.Millisecond)
				}
			}
			q.Close()
			before, sum := log.sums()
			if sum != events {
				t.Errorf("seed %d: %d events, and the lines add up to %d", seed, events, sum)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if add(q, kind{"record", "late"}, 0); log.count() != before+1 {
				t.Errorf("seed %d: after the end, %d lines about one event", seed, log.count()-before)
			}
		})
	}
}

// A class with an id in its name had as many kinds as records.
func TestStorms_BoundsItsLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := stormLog{}
		q := log.storms()
		for i := range 5000 {
			add(q, kind{"record", fmt.Sprint(i)}, i)
		}
		if n := log.count(); n != maxKinds+1 {
			t.Errorf("%d lines at once about 5,000 kinds, want %d", n, maxKinds+1)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, sum := log.sums(); sum != 5000 || n != maxKinds+3 {
			t.Errorf("%d lines about %d events: %v", n, sum, log.lines[maxKinds:])
		}
	})
}

// A logger may call back, for example to ask for the consumer's health, whose hooks may log.
func TestStorms_ReportMayAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q Storms[int, int]
		sum := 0
		q.Report = func(k int, l Tally[int]) {
			if sum += l.Events; k == 1 && l.Events > 0 {
				add(&q, 2, 0)
			}
		}
		add(&q, 1, 0)
		add(&q, 1, 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		add(&q, 1, 0)
		q.Close()
		if sum != 6 {
			t.Errorf("the lines add up to %d, want 6", sum)
		}
	})
}

// A log that took longer than an interval was given the next lines meanwhile. In virtual time, the
// goroutine that waited for the first one stopped the clock.
func TestStorms_WaitForASlowLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines, at, most := 0, 0, 0
		q := Storms[string, int]{Rest: func(string) string { return "rest" }}
		q.Report = func(_ string, line Tally[int]) {
			if line.First() {
				return
			}
			at++
			most = max(most, at)
			time.Sleep(3 * Every)
			at--
			lines++
		}
		add := func() { q.Add(time.Now(), new("a"), new(int)) }
		add()
		for range 10 {
			add()
			time.Sleep(Every)
		}
		add()
		q.Close()
		if lines < 3 || at != 0 || most != 1 {
			t.Errorf("%d lines, %d at a time, %d at the end", lines, most, at)
		}
	})
}
