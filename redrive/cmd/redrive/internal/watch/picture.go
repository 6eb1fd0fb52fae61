package watch

import (
	"strings"
	"time"
)

// bars is how many times a picture has.
const bars = 60

// picture counts failures by time, those of resolved letters included.
type picture struct {
	by time.Duration // the length of a time
	n  [bars]int64
}

// pictureOf returns the picture of the shortest range that has nine tenths of the open letters'
// failures, of an hour, six hours, a day and a week. So an old letter does not hide an incident.
func pictureOf(s *letters, now time.Time) (p picture) {
	steps := []time.Duration{time.Minute, 6 * time.Minute, 24 * time.Minute, 168 * time.Minute}
	within, all := make([]int64, len(steps)), int64(0)
	begins := make([]int64, len(steps))
	for i, by := range steps {
		begins[i] = now.Truncate(by).Add(-(bars - 1) * by).UnixMilli()
	}
	for _, rows := range s.rows {
		for i := range rows {
			if rows[i].fate != open {
				continue
			}
			all++
			for j, from := range begins {
				if rows[i].failed >= from {
					within[j]++
				}
			}
		}
	}
	chosen := 0
	for chosen < len(steps)-1 && within[chosen]*10 < all*9 {
		chosen++
	}
	p.by = steps[chosen]
	from, by := begins[chosen], p.by.Milliseconds()
	for _, rows := range s.rows {
		for i := range rows {
			if at := rows[i].failed - from; at >= 0 && rows[i].fate != duplicate {
				p.n[min(at/by, bars-1)]++ // a clock may be fast
			}
		}
	}
	return p
}

// draw returns a bar for each time, or for each few of them where there is less room, and how long
// and how high the bars are.
func (p *picture) draw(room int) (drawn string, each time.Duration, most int64) {
	one := 1
	for bars/one > room && one < bars {
		for one++; bars%one > 0; one++ {
		}
	}
	var sums []int64
	for i, n := range p.n {
		if i%one == 0 {
			sums = append(sums, 0)
		}
		sums[len(sums)-1] += n
		most = max(most, sums[len(sums)-1])
	}
	const heights = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for _, n := range sums {
		if n == 0 {
			b.WriteString("·")
			continue
		}
		// one failure never looks like none, nor like the most
		b.WriteString(string([]rune(heights)[(n*8-1)/most]))
	}
	return b.String(), time.Duration(one) * p.by, most
}
