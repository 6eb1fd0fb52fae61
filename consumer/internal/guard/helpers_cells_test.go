package guard

import (
	"fmt"
	"time"
)

const (
	second = time.Second
	minute = time.Minute
)

func down(from, to time.Duration) trouble {
	return trouble{share: 1, from: from, to: to, outcome: Failed}
}

// rows returns the situations in which five trials saw the breaker and the retry budget do harm. In
// the longer ones there is trouble for a time.
func rows(long time.Duration) []cell {
	some := func(share float64, s scope) trouble {
		return trouble{share: share, scope: s, from: minute, to: minute + long, outcome: Failed}
	}
	lasts := long + 2*minute
	poison := func(share float64, o Outcome) trouble { return trouble{share: share, scope: byRecord, outcome: o} }
	flaps := func(on, off, lasts time.Duration) trouble {
		return trouble{share: 1, to: lasts, on: on, off: off, outcome: Failed}
	}
	burst := func(gap time.Duration) cell {
		return cell{rate: 400 / gap.Seconds(), burst: 400, lasts: 5 * minute, order: byNone, slow: 100 * time.Millisecond, fast: time.Millisecond}
	}
	one := cell{rate: 0.1, waiting: 1500, lasts: 11 * minute, tenants: 1, keys: 1}
	key := one
	key.order = byKey
	named := func(name string, c cell, t ...trouble) cell {
		c.name, c.troubles = name, t
		return c
	}
	return []cell{
		named("1 outage 10 min, one partition", one, down(0, 10*minute)),
		named("1 outage 10 min, one key", key, down(0, 10*minute)),
		named("1 outage 30 s, one partition", one, down(0, 30*second)),
		named("2 45 % of tenants", cell{rate: 20, lasts: lasts, partitions: 4}, some(0.45, byTenant)),
		named("2 55 % of tenants", cell{rate: 20, lasts: lasts, partitions: 4}, some(0.55, byTenant)),
		named("2 60 % of tenants, 40/s", cell{rate: 40, lasts: lasts, partitions: 4}, some(0.6, byTenant)),
		named("2 60 % of tenants, by key", cell{rate: 20, lasts: lasts, partitions: 4, order: byKey}, some(0.6, byTenant)),
		named("2 90 % of tenants, 2/s", cell{rate: 2, lasts: lasts, partitions: 4}, some(0.9, byTenant)),
		named("3 60 % for good, then 20 s all", cell{rate: 20, lasts: 6 * minute}, poison(0.6, Defect), down(minute, 80*second)),
		named("3 80 % for good, then 20 s all", cell{rate: 20, lasts: 6 * minute}, poison(0.8, Defect), down(minute, 80*second)),
		named("4 half for good, bursts each 12 s", burst(12*second), poison(0.5, Failed)),
		named("4 half for good, bursts each 30 s", burst(30*second), poison(0.5, Failed)),
		named("5 outage 10 min", cell{rate: 20, lasts: 12 * minute, partitions: 4}, down(minute, 11*minute)),
		named("6 40 % by chance", cell{rate: 20, lasts: lasts, partitions: 4}, some(0.4, byChance)),
		named("7 45 % by chance", cell{rate: 20, lasts: lasts, partitions: 4}, some(0.45, byChance)),
		named("7 60 % by chance", cell{rate: 20, lasts: lasts, partitions: 4}, some(0.6, byChance)),
		named("8 flaps, 3 s and 3 s", cell{rate: 20, lasts: lasts, partitions: 4}, flaps(3*second, 3*second, long)),
		named("9 no tiers, 2 min down, 1 up", cell{rate: 20, lasts: lasts, partitions: 4, bare: true}, flaps(2*minute, minute, long)),
		named("10 99 % defects, 10 min", cell{rate: 20, lasts: 12 * minute, partitions: 4}, trouble{share: 0.99, scope: byRecord, from: minute, to: 11 * minute, outcome: Defect}),
	}
}

// grid returns the cells beside the rows.
func grid() (all []cell) {
	add := func(name string, c cell, t ...trouble) {
		c.name, c.troubles = name, t
		if c.seed == 0 {
			c.seed = uint64(len(all) + 1)
		}
		all = append(all, c)
	}
	orders := []order{byPartition, byKey, byNone}
	for _, o := range orders {
		for _, at := range []struct {
			rate                float64
			partitions, members int
		}{{1, 1, 1}, {5, 1, 1}, {20, 1, 1}, {20, 100, 1}, {20, 20, 20}, {100, 1, 1}, {400, 10, 1}, {400, 100, 20}, {2000, 1000, 20}} {
			c := cell{rate: at.rate, partitions: at.partitions, members: at.members, order: o, lasts: 12 * minute}
			if at.rate > 1000 {
				c.lasts = 3 * minute
			}
			add(fmt.Sprintf("outage %v/s %v×%v %v", at.rate, at.partitions, at.members, o), c, down(minute, c.lasts-minute))
		}
		for _, share := range []float64{0.01, 0.1, 0.19, 0.25, 0.4, 0.6, 0.8, 0.9, 0.94, 0.96, 0.99} {
			for _, s := range []scope{byTenant, byRecord, byChance} {
				for _, at := range []struct {
					rate       float64
					partitions int
				}{{2, 1}, {20, 1}, {20, 10}, {60, 1}} {
					c := cell{rate: at.rate, partitions: at.partitions, order: o, lasts: 24 * minute}
					add(fmt.Sprintf("share %v %v %v/s %v %v", share, s, at.rate, at.partitions, o), c, trouble{share: share, scope: s, from: minute, to: 21 * minute, outcome: Failed})
				}
			}
			c := cell{rate: 20, partitions: 2, order: o, lasts: 24 * minute}
			add(fmt.Sprintf("good %v record %v", share, o), c, trouble{share: share, scope: byRecord, outcome: Failed})
			add(fmt.Sprintf("good %v tenant %v", share, o), c, trouble{share: share, scope: byTenant, outcome: Failed})
			for _, what := range []Outcome{Failed, Defect} {
				for _, lasts := range []time.Duration{20 * second, 10 * minute} {
					for _, p := range []int{1, 8} {
						add(fmt.Sprintf("good %v record %v, all %v %v %v", share, [...]string{2: "failed", 3: "defect"}[what], lasts, p, o), cell{rate: 20, partitions: p, order: o, lasts: 15 * minute},
							trouble{share: share, scope: byRecord, outcome: what}, down(2*minute, 2*minute+lasts))
					}
				}
			}
		}
		for _, on := range []time.Duration{second, 3 * second, 6 * second, 10 * second, 30 * second, 90 * second, 300 * second} {
			for _, share := range []float64{1, 0.5} {
				c := cell{rate: 40, partitions: 2, order: o, lasts: 42 * minute}
				add(fmt.Sprintf("flaps %v %v %v", on, share, o), c, trouble{share: share, scope: byTenant, from: minute, to: 41 * minute, on: on, off: on, outcome: Failed})
			}
		}
		for _, gap := range []time.Duration{2 * second, 12 * second, 30 * second, minute} {
			for _, share := range []float64{0.5, 0.9, 1} {
				c := cell{rate: 400 / gap.Seconds(), burst: 400, partitions: 4, order: o, lasts: 6*minute + 5*gap, fast: time.Millisecond}
				add(fmt.Sprintf("bursts each %v %v %v", gap, share, o), c, trouble{share: share, scope: byRecord, from: minute, to: 4 * minute, outcome: Failed})
			}
		}
		for _, slow := range []time.Duration{100 * time.Millisecond, second, 5 * second} {
			for _, share := range []float64{0.3, 0.6, 0.9, 1} {
				c := cell{rate: 1.5, partitions: 60, order: o, lasts: 20 * minute, slow: slow}
				add(fmt.Sprintf("slow %v %v %v", slow, share, o), c, trouble{share: share, scope: byTenant, from: 2 * minute, to: 15 * minute, outcome: Failed})
			}
		}
		for _, share := range []float64{0.5, 0.9, 1} {
			c := cell{rate: 20, partitions: 4, order: o, lasts: 15 * minute}
			for at := 2 * minute; at < 12*minute; at += minute {
				c.restarts = append(c.restarts, at)
			}
			add(fmt.Sprintf("restarts %v %v", share, o), c, trouble{share: share, scope: byTenant, from: minute, to: 11 * minute, outcome: Failed})
		}
		for _, share := range []float64{0.1, 0.3, 0.6, 0.9, 1} {
			add(fmt.Sprintf("batch %v %v", share, o), cell{rate: 1, waiting: 10000, partitions: 4, order: o, lasts: second}, trouble{share: share, scope: byTenant, to: 15 * minute, outcome: Failed})
		}
	}
	for _, o := range orders {
		c := cell{rate: 10_000, partitions: 1000, members: 20, order: o, lasts: minute}
		add(fmt.Sprintf("outage %v/s 1000×20 %v", int(c.rate), o), c, down(15*second, 45*second))
		add(fmt.Sprintf("share 0.6 tenant %v/s 1000×20 %v", int(c.rate), o), c, trouble{share: 0.6, from: 15 * second, to: 45 * second, outcome: Failed})
	}
	for _, o := range orders {
		for _, blocks := range []int{50, 400} {
			for _, partitions := range []int{1, 4} {
				c := cell{rate: 20, partitions: partitions, order: o, blocks: blocks, lasts: 34 * minute}
				add(fmt.Sprintf("blocks of %v, half %v %v", blocks, partitions, o), c, trouble{share: 0.5, from: minute, to: 31 * minute, outcome: Failed})
			}
		}
	}
	return all
}
