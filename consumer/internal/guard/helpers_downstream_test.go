package guard

import "time"

// scope says which calls fail while the downstream is in trouble.
type scope uint8

const (
	byTenant scope = iota // those of some tenants, always the same ones
	byRecord              // those of some records, always the same ones
	byChance              // some calls
)

func (s scope) String() string { return [...]string{"tenant", "record", "chance"}[s] }

// trouble is what is wrong with the downstream, from one time to another.
type trouble struct {
	share    float64
	scope    scope
	from, to time.Duration // to is 0 if it lasts for good
	on, off  time.Duration // of flaps
	outcome  Outcome
}

// call returns how a call ends, and how long it takes. It depends on the record and the number of
// its call, so that it is the same whatever machine plays.
func (w *world) call(r *record) (o Outcome, takes time.Duration) {
	w.count(&w.calls)
	r.calls++
	h := mix(uint64(r.id)<<20 + uint64(r.calls) + w.cell.seed<<50)
	takes = 5*time.Millisecond + time.Duration(h%5000)*time.Microsecond
	for i := range w.cell.troubles {
		if t := &w.cell.troubles[i]; t.fails(w.now) && w.cell.hits(t, r, h>>20) {
			if w.cell.fast > 0 {
				takes = w.cell.fast
			}
			return t.outcome, takes
		}
	}
	if w.cell.slow > 0 {
		takes = w.cell.slow
	}
	return Good, takes
}

// fails reports whether there is trouble at a time.
func (t *trouble) fails(now time.Duration) bool {
	if now < t.from || t.to > 0 && now >= t.to {
		return false
	}
	return t.on == 0 || (now-t.from)%(t.on+t.off) < t.on
}

// hits reports whether the trouble is one of a record, or of a call.
func (c *cell) hits(t *trouble, r *record, call uint64) bool {
	var of uint64
	switch t.scope {
	case byTenant:
		n := or(c.tenants, 100)
		return float64((r.tenant*61+7)%n) < t.share*float64(n)
	case byRecord:
		of = mix(uint64(r.id) + 1<<40)
	case byChance:
		of = call
	}
	return float64(of%100_000) < t.share*100_000
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
