package guard

import "time"

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
		named("8 flaps, 3 s and 3 s", cell{rate: 60, lasts: lasts, partitions: 4}, flaps(3*second, 3*second, long)),
		named("9 no tiers, 2 min down, 1 up", cell{rate: 20, lasts: lasts, partitions: 4, bare: true}, flaps(2*minute, minute, long)),
		named("10 99 % defects, 10 min", cell{rate: 20, lasts: 12 * minute, partitions: 4}, trouble{share: 0.99, scope: byRecord, from: minute, to: 11 * minute, outcome: Defect}),
	}
}
