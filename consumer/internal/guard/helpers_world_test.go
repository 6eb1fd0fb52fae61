package guard

import (
	"time"
)

// The simulation plays a machine beside a model of a topic: sources, lanes, tiers, handlers and a
// downstream. It has discrete events and a virtual clock, but neither goroutines nor brokers.

// order is the order of a consumer.
type order uint8

const (
	byPartition order = iota
	byKey
	byNone
)

func (o order) String() string { return [...]string{"partition", "key", "none"}[o] }

// cell is one experiment.
type cell struct {
	name                string
	rate                float64 // records a second
	lasts               time.Duration
	partitions, members int // 0: one
	tenants, keys       int // keys are of each tenant; 0: a hundred, and ten
	order               order
	bare                bool // no tiers
	burst               int  // so many records come at a time
	blocks              int  // so many records of a key come one after the other
	waiting             int  // so many come at the beginning, beside the others
	troubles            []trouble
	restarts            []time.Duration // of all members
	fast, slow          time.Duration   // of a failure and a success; 0: 5 to 10 ms
	seed                uint64
}

// member is a member of the group.
type member struct {
	lanes []*lane
	gate  gate
	slots int
	wants []*lane
	armed time.Duration
	held  bool
}

// fate is what becomes of a record whose run failed.
type fate uint8

const (
	attempt fate = iota // the failure is an attempt
	free                // it is none, and the record waits in its tier
	stays               // it is none, and the record stays where it is
)

// pick is what a lane runs next, and the gate's permission to do so.
type pick struct {
	record *record
	feed   int
	ticket any
}

// gate is a machine with its lane side.
type gate interface {
	// take chooses what a lane runs next.
	take(l *lane) (p pick, ok bool)
	// end registers how a run ended, and says what becomes of its record.
	end(l *lane, p pick, o Outcome) fate
	// next is the time of the next tick, 0 if there is none.
	next() time.Duration
	tick()
	// holds reports whether it holds the source.
	holds() bool
}

// world is the state of a simulation.
type world struct {
	cell    *cell
	now     time.Duration
	seq     int
	events  []event
	lanes   []*lane
	members []*member
	records []*record
	settled int
	makes   func(*world, *member) gate
	calls   []int // by the second
	offered []int
	heldTo  time.Duration // the last time at which a source was held
}

var delays = [...]time.Duration{0, 5 * time.Second, 30 * time.Second, 5 * time.Minute}

const (
	maxAttempts = len(delays)
	maxOutage   = time.Hour
	mostSlots   = 64
)

// simulate plays a cell until each record has ended, or for two hours after the last one came.
func simulate(c cell, makes func(*world, *member) gate) *world {
	w := &world{cell: &c, makes: makes}
	for i := range max(c.partitions, 1) {
		w.lanes = append(w.lanes, &lane{world: w, number: i, behind: map[int][]*record{}, keys: map[int]bool{}, last: map[int]int{}})
	}
	for i := range max(c.members, 1) {
		m := &member{slots: mostSlots}
		if c.order == byPartition {
			m.slots = len(w.lanes) * len(delays)
		}
		for j := i; j < len(w.lanes); j += max(c.members, 1) {
			w.lanes[j].member = m
			m.lanes = append(m.lanes, w.lanes[j])
		}
		m.gate = makes(w, m)
		w.members = append(w.members, m)
		for _, at := range c.restarts {
			w.add(event{at: at, kind: restarted, member: m})
		}
	}
	w.play()
	return w
}

func (w *world) play() {
	c := w.cell
	total, burst := int(c.rate*c.lasts.Seconds()), max(c.burst, 1)
	gap := time.Duration(float64(burst) / c.rate * float64(time.Second))
	for range c.waiting {
		w.arrive()
	}
	total += c.waiting
	for arrival, left := time.Duration(0), burst; ; {
		switch comes := len(w.records) < total; {
		case comes && (len(w.events) == 0 || arrival <= w.events[0].at):
			w.now = arrival
			w.arrive()
			if left--; left == 0 {
				arrival, left = arrival+gap, burst
			}
		case !comes && w.settled == total, len(w.events) == 0, w.events[0].at > c.lasts+2*time.Hour:
			return
		default:
			e := w.pop()
			w.now = e.at
			w.happen(&e)
		}
	}
}

func (w *world) happen(e *event) {
	m := e.member
	switch e.kind {
	case due:
		e.lane.enqueue(e.pick.record)
		w.wake(e.lane)
		return
	case ended:
		w.end(e)
	case ticked:
		if m.armed != e.at {
			return
		}
		m.armed = 0
		m.gate.tick()
	case restarted:
		m.gate = w.makes(w, m)
		m.armed = 0
		for _, l := range m.lanes {
			l.giveUp()
		}
		w.wakeAll(m)
	}
	w.watch(m)
}

// watch registers whether the member's source is held, and sets its timer.
func (w *world) watch(m *member) {
	if held := m.gate.holds(); held || m.held {
		m.held = held
		w.heldTo = w.now
	}
	if at := m.gate.next(); at > 0 && (m.armed == 0 || at < m.armed) {
		m.armed = max(at, w.now)
		w.add(event{at: m.armed, kind: ticked, member: m})
	}
}

func (w *world) arrive() {
	c := w.cell
	tenants, keys := or(c.tenants, 100), or(c.keys, 10)
	id := len(w.records)
	key := int(mix(uint64(id/or(c.blocks, 1))+c.seed<<40) % uint64(tenants*keys))
	r := &record{id: id, arrived: w.now, tenant: key % tenants, key: key}
	r.lane = w.lanes[mix(uint64(key))%uint64(len(w.lanes))]
	w.records = append(w.records, r)
	w.count(&w.offered)
	r.lane.enqueue(r)
	w.wake(r.lane)
}

func or(a, b int) int {
	if a == 0 {
		return b
	}
	return a
}

func (w *world) count(by *[]int) {
	second := int(w.now / time.Second)
	for len(*by) <= second {
		*by = append(*by, 0)
	}
	(*by)[second]++
}

// wake has a lane start what it may.
func (w *world) wake(l *lane) {
	m := l.member
	for {
		if m.slots == 0 {
			l.want()
			return
		}
		p, ok := m.gate.take(l)
		if !ok {
			break
		}
		m.slots--
		l.feeds[p.feed].busy = true
		o, takes := w.call(p.record)
		w.add(event{at: w.now + takes, kind: ended, member: m, gate: m.gate, lane: l, pick: p, outcome: o})
	}
	w.watch(m)
}

func (w *world) wakeAll(m *member) {
	for _, l := range m.lanes {
		w.wake(l)
	}
}

func (w *world) end(e *event) {
	m, l, r := e.member, e.lane, e.pick.record
	m.slots++
	l.feeds[e.pick.feed].busy = false
	to := e.gate.end(l, e.pick, e.outcome)
	switch {
	case e.outcome == Good:
		w.finish(r)
		if r.copied {
			break
		}
		of := r.key
		if w.cell.order == byPartition {
			of = -1
		}
		l.last[of] = max(l.last[of], r.id)
	case to == stays:
		r.failed = true
	default:
		r.failed = true
		w.route(r, to == free, e.outcome)
	}
	if e.outcome == Good || to != stays {
		l.release(r)
	}
	l.want()
	for m.slots > 0 && len(m.wants) > 0 {
		l := m.wants[0]
		m.wants, l.wants = m.wants[1:], false
		w.wake(l)
	}
}

// route has a failed record wait in a tier, or ends it.
func (w *world) route(r *record, free bool, o Outcome) {
	r.copied = true
	if r.failedAt == 0 {
		r.failedAt = w.now
	}
	switch {
	case o == Defect, w.cell.bare:
		r.dead = true
	case free:
		r.tier = max(r.tier, 1)
	default:
		if r.attempts++; r.attempts == maxAttempts {
			r.dead = true
			break
		}
		r.tier = min(r.tier+1, len(delays)-1)
	}
	if r.dead {
		w.finish(r)
		return
	}
	wait := delays[r.tier]
	wait += wait / 1000 * time.Duration(mix(uint64(r.id)<<20+uint64(r.calls)+w.cell.seed<<40)%100)
	w.add(event{at: w.now + wait, kind: due, lane: r.lane, member: r.lane.member, pick: pick{record: r}})
}

func (w *world) finish(r *record) {
	r.done = w.now
	w.settled++
}
