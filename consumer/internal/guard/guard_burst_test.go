package guard

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// burst is what runs after a gap: as many records at a time as there are slots.
type burst struct {
	slots int
	takes time.Duration
	fails func(i int) bool
	first bool // failures take a millisecond
}

const burstRuns = 5000

// strains has the burst run until the guard strains its topic. It returns how many runs had failed
// by then; ok is false if it never does.
func (b *burst) strains(g Guard, now time.Duration) (failed int, ok bool) {
	type running struct {
		Run
		number int
		ends   time.Duration
	}
	var all []running
	for n := 0; n < burstRuns || len(all) > 0; {
		for ; n < burstRuns && len(all) < b.slots; n++ {
			r, _ := g.Source(now, false)
			takes := b.takes
			if b.first && b.fails(n) {
				takes = time.Millisecond
			}
			all = append(all, running{r, n, now + takes*time.Duration(80+mix(uint64(n))%41)/100})
		}
		first := 0
		for i := range all {
			if all[i].ends < all[first].ends {
				first = i
			}
		}
		r, o := all[first], Good
		all = slices.Delete(all, first, first+1)
		now = r.ends
		if b.fails(r.number) {
			o = Failed
			failed++
		}
		if g.End(now, r.Run, o) {
			return failed, true
		}
	}
	return failed, false
}

// quietAfter returns a guard that had two hours of good runs at a rate, and the time after these.
func quietAfter(rate int) (g *Guard, now time.Duration) {
	const lasts = 2 * time.Hour
	g = New(defaults)
	for i := range int(lasts.Seconds()) * rate {
		now = time.Duration(i) * time.Second / time.Duration(rate)
		r, _ := g.Source(now, false)
		g.End(now+5*time.Millisecond, r, Good)
	}
	return g, lasts
}

// A member was idle, and then ran its backlog, all of which failed: 187 of the attempts had before
// its topic was strained, since a fifteenth of those that began still went on. Another one needed
// 251. bursts.txt has how many fail, by what ran before the gap, by the runs at a time, by how long
// they take, and by the share that fails. A tenth that fails, or twenty in front of good ones,
// strain nothing that ran well before, also if they end first; however long the gap was.
func TestGuard_BurstAfterAGap(t *testing.T) {
	t.Parallel()
	some := func(percent uint64) func(int) bool {
		return func(i int) bool { return mix(uint64(i)+1<<40)%100 < percent }
	}
	kinds := []func(int) bool{some(100), some(50), some(20), some(10), func(i int) bool { return i < 20 }}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%6s %5s %6s %6s %6s %6s %6s %6s\n", "before", "slots", "takes", "100 %", "50 %", "20 %", "10 %", "20 of")
	for _, rate := range []int{0, 20, 200} {
		before, end := quietAfter(rate)
		known, _, _, _ := before.measure.sum(end)
		for _, slots := range []int{1, 8, 64, 256} {
			for _, takes := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 5 * time.Second} {
				name := fmt.Sprintf("%4d/s %5d %6s", rate, slots, takes)
				text.WriteString(name)
				for kind, fails := range kinds {
					b := burst{slots, takes, fails, kind >= 3}
					failed, ok := b.strains(*before, end+10*time.Second)
					for _, gap := range []time.Duration{time.Minute, 30 * time.Minute} {
						if later, so := b.strains(*before, end+gap); later != failed || so != ok {
							t.Errorf("%s, kind %d: %d fail after a gap of 10 s, %d after one of %v", name, kind, failed, later, gap)
						}
					}
					most := max(enough, (int(known)+slots+evidence)/4+1)
					switch {
					case kind == 0 && (!ok || failed > most):
						t.Errorf("%s: all fail, and %d have when the topic is strained (%v), want at most %d", name, failed, ok, most)
					case kind >= 3 && rate > 0 && ok:
						t.Errorf("%s, kind %d: the topic is strained", name, kind)
					}
					says := "-"
					if ok {
						says = strconv.Itoa(failed)
					}
					fmt.Fprintf(&text, " %6s", says)
				}
				text.WriteString("\n")
			}
		}
	}
	compare(t, "bursts.txt", text.String())
}
