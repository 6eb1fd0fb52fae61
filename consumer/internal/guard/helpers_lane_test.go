package guard

import (
	"slices"
	"time"
)

// record is a record, and what became of it.
type record struct {
	id, tenant, key int
	arrived         time.Duration
	lane            *lane
	calls, attempts int
	tier            int           // 0 is the source
	failedAt        time.Duration // its first attempt failed
	failed          bool          // also as a probe
	copied          bool          // it left its source
	probedAt        time.Duration
	good            bool // as a probe
	done            time.Duration
	dead            bool
}

// fifo is a queue of records that are ready.
type fifo struct {
	all  []*record
	busy bool // under byPartition
}

func (f *fifo) push(r *record) { f.all = append(f.all, r) }

func (f *fifo) remove(i int) *record {
	r := f.all[i]
	if i == 0 {
		f.all = f.all[1:]
	} else {
		f.all = slices.Delete(f.all, i, i+1)
	}
	return r
}

func (f *fifo) front(all ...*record) { f.all = slices.Concat(all, f.all) }

// lane is a partition of the source, with that of each tier.
type lane struct {
	world     *world
	number    int
	member    *member
	feeds     [4]fifo // of the source and the tiers
	next      int     // the feed that is asked first
	behind    map[int][]*record
	keys      map[int]bool
	tentative []*record     // failed as probes, under byPartition
	headAt    time.Duration // the first of these ran
	head      *record       // that one, while it runs
	last      map[int]int
	wants     bool // a slot
}

// enqueue makes a record ready, or puts it behind another one of its key.
func (l *lane) enqueue(r *record) {
	if l.world.cell.order == byKey && r.tier == 0 {
		if l.keys[r.key] {
			l.behind[r.key] = append(l.behind[r.key], r)
			return
		}
		l.keys[r.key] = true
	}
	l.feeds[r.tier].push(r)
}

// release makes the next record of a key ready.
func (l *lane) release(r *record) {
	if l.world.cell.order != byKey {
		return
	}
	for q := l.behind[r.key]; len(q) > 0; {
		next := q[0]
		q = q[1:]
		l.behind[r.key] = q
		l.feeds[next.tier].push(next)
		if next.tier == 0 {
			return
		}
	}
	delete(l.keys, r.key)
	delete(l.behind, r.key)
}

// pull takes the first record of a tier that may start. A retry claims its key not before it runs,
// so that it holds up nothing while it waits for the budget.
func (l *lane) pull(at int) (r *record, ok bool) {
	f := &l.feeds[at]
	for l.may(at) {
		r := f.remove(0)
		switch {
		case at == 0, l.world.cell.order != byKey:
		case l.keys[r.key]:
			l.behind[r.key] = append(l.behind[r.key], r)
			continue
		default:
			l.keys[r.key] = true
		}
		return r, true
	}
	return nil, false
}

// may reports whether a feed has a record that may start.
func (l *lane) may(feed int) bool {
	return len(l.feeds[feed].all) > 0 && (l.world.cell.order != byPartition || !l.feeds[feed].busy)
}

// turn picks a record of the feeds in turn.
func (l *lane) turn(retries bool) (p pick, ok bool) {
	for i := range l.feeds {
		at := (l.next + i) % len(l.feeds)
		if at > 0 && !retries {
			continue
		}
		if r, ok := l.pull(at); ok {
			l.next = at + 1
			return pick{record: r, feed: at}, true
		}
	}
	return p, false
}

// want has the lane ask for a slot, after the lanes that do.
func (l *lane) want() {
	if m := l.member; !l.wants {
		l.wants = true
		m.wants = append(m.wants, l)
	}
}

// giveUp puts the records back that failed as probes.
func (l *lane) giveUp() {
	if len(l.tentative) == 0 {
		return
	}
	l.feeds[0].front(l.tentative...)
	l.tentative = nil
}
