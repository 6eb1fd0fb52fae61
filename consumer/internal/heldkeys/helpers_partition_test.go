package heldkeys

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// partition is a partition and the process that runs it, as simple as possible.
type partition struct {
	keys   []Key // of the records, by offset
	now    time.Time
	text   string // of the last commit, with its offset
	floor  int64
	events int
	first  map[int64]int // when a record had its first outcome, and its last one
	last   map[int64]int
	due    map[int64]time.Time // before which it must not run, as the process decided
	said   map[int64]time.Time // the same, as a commit has said

	// the process
	held    *Keys[int64]
	tracker offsets.Tracker
	claims  map[Key][]int64 // the records behind the one that has the key
	ready   []int64
	running []int64
	letters []int64 // copies that are not safe yet
	fails   map[int64]int
}

func newPartition(t *rapid.T) *partition {
	p := &partition{now: time.Unix(1_800_000_000, 0), first: map[int64]int{}, last: map[int64]int{}, said: map[int64]time.Time{}}
	for range rapid.IntRange(1, 12).Draw(t, "records") {
		p.keys = append(p.keys, Key(rapid.IntRange(1, 3).Draw(t, "key")))
	}
	p.begin()
	return p
}

// begin is a process that gets the partition.
func (p *partition) begin() {
	said, _ := offsets.ParseMetadata(p.text, p.floor)
	p.held, p.tracker = New[int64](1000), offsets.New(p.floor, p.floor)
	p.tracker.Restore(said.Finished, 0)
	p.held.Restore(said.Heads, 0, p.now.Add(time.Hour))
	p.claims, p.fails, p.ready, p.running, p.letters = map[Key][]int64{}, map[int64]int{}, nil, nil, nil
	p.due = maps.Clone(p.said)
}

func (p *partition) read() {
	at := p.tracker.Next
	if int(at) == len(p.keys) {
		return
	}
	if p.tracker.FinishedBefore(at, 0) {
		p.tracker.Skip(at + 1)
		return
	}
	p.tracker.Deliver(at)
	key := p.keys[at]
	if behind, busy := p.claims[key]; busy {
		p.claims[key] = append(behind, at)
		p.held.Follow(key)
		return
	}
	p.claims[key] = nil
	p.makeReady(at)
}

// makeReady gives a record its key. It waits if an earlier owner said so.
func (p *partition) makeReady(at int64) {
	if w, ok := p.held.Take(at); ok {
		p.fails[at] = w.Attempts
		p.held.Hold(p.keys[at], at, at, w, len(p.claims[p.keys[at]]))
		return
	}
	p.ready = append(p.ready, at)
}

// free gives the key of a record that is finished to the next one.
func (p *partition) free(at int64) {
	p.tracker.Finish(at)
	key := p.keys[at]
	p.held.End(key)
	if behind := p.claims[key]; len(behind) > 0 {
		p.claims[key] = behind[1:]
		p.makeReady(behind[0])
		return
	}
	delete(p.claims, key)
}

func (p *partition) outcome(at int64) {
	p.events++
	if p.first[at] == 0 {
		p.first[at] = p.events
	}
	p.last[at] = p.events
}

func (p *partition) commit() {
	c := p.tracker.Commit()
	m := offsets.Metadata{Finished: c.Finished, Heads: p.held.Commit(p.tracker.IsFinished)}
	for _, h := range m.Heads {
		p.said[h.Offset] = time.Unix(h.Due, 0)
	}
	p.floor, p.text = c.Floor, m.Encode(c.Floor, offsets.MetadataLimit)
}

func (p *partition) start(t *rapid.T, at int64) {
	if due := p.due[at]; p.now.Before(due) {
		t.Fatalf("record %d runs at %v, and is due at %v", at, p.now, due)
	}
	for _, other := range slices.Concat(p.running, p.letters) {
		if p.keys[other] == p.keys[at] {
			t.Fatalf("record %d runs while %d of its key has not ended", at, other)
		}
	}
	p.running = append(p.running, at)
}

// end ends a run: 0 is handled, 1 a failure, 2 the last failure.
func (p *partition) end(at int64, how int) {
	switch how {
	case 0:
		p.outcome(at)
		p.free(at)
	case 1:
		p.fails[at]++
		due := p.now.Add(1500 * time.Millisecond)
		p.due[at] = due
		p.held.Hold(p.keys[at], at, at, Wait{Attempts: p.fails[at], Failed: p.now, Due: due}, len(p.claims[p.keys[at]]))
	case 2:
		p.outcome(at)
		p.letters = append(p.letters, at)
	}
}

// pass lets time pass.
func (p *partition) pass(d time.Duration) {
	p.now = p.now.Add(d)
	p.ready = append(p.held.Due(p.now), p.ready...)
}

func (p *partition) step(t *rapid.T) {
	take := func(from *[]int64) (int64, bool) {
		if len(*from) == 0 {
			return 0, false
		}
		i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
		at := (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		return at, true
	}
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1:
		p.read()
	case 2, 3:
		if at, ok := take(&p.ready); ok {
			p.start(t, at)
		}
	case 4, 5, 6:
		if at, ok := take(&p.running); ok {
			p.end(at, rapid.IntRange(0, 2).Draw(t, "how"))
		}
	case 7:
		if at, ok := take(&p.letters); ok {
			p.free(at)
		}
	case 8:
		p.pass(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
	case 9:
		p.commit()
	case 10: // dies
		p.begin()
	case 11: // hands over
		p.commit()
		p.begin()
	}
}

// settle has all records end, and looks at the order of what became of them.
func (p *partition) settle(t *rapid.T) {
	for range 100 {
		p.read()
		for _, at := range p.ready {
			p.start(t, at)
		}
		running := p.running
		if p.ready, p.running = nil, nil; len(running) > 0 {
			for _, at := range running {
				p.end(at, 0)
			}
		}
		for _, at := range p.letters {
			p.free(at)
		}
		p.letters = nil
		p.pass(time.Second)
	}
	if p.tracker.Floor() != int64(len(p.keys)) || p.held.Len() > 0 || p.held.Held() > 0 || len(p.held.Commit(p.tracker.IsFinished)) > 0 {
		t.Fatalf("the floor is %d of %d, %d keys and %d records are held", p.tracker.Floor(), len(p.keys), p.held.Len(), p.held.Held())
	}
	for j := range p.keys {
		for i := range j {
			early, late := int64(i), int64(j)
			if p.keys[i] == p.keys[j] && (p.first[early] == 0 || p.first[early] > p.first[late] || p.last[early] > p.last[late]) {
				t.Fatalf("records %d and %d of a key: first outcomes at %d and %d, last ones at %d and %d", i, j, p.first[early], p.first[late], p.last[early], p.last[late])
			}
		}
	}
}
