package consumer

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// gate pauses and resumes the fetches of one client.
//
// Who finds a feed full (the poll loop) and who finds that it has room again (a worker) are different goroutines, and
// their calls may come in either order. So nobody says "pause" or "resume": they set feed.full under the lane's lock and
// let the gate compare it with what kgo was told; whoever comes last sees the final word.
//
// In kgo a pause outlives the assignment (it is a set of names), so a feed that is forgotten is resumed.
// See DESIGN.md, "Pausing fetches".
type gate struct {
	mu     sync.Mutex
	client *kgo.Client
}

func (g *gate) sync(feeds ...*feed) {
	if len(feeds) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Each kind by itself: a feed may be named twice, and change its mind in between.
	if pause := turned(feeds, true); pause != nil {
		g.client.PauseFetchPartitions(pause)
	}
	if resume := turned(feeds, false); resume != nil {
		g.client.ResumeFetchPartitions(resume)
	}
}

// turned notes the feeds that are to be as full says and are not, and lists them for kgo.
func turned(feeds []*feed, full bool) (m map[string][]int32) {
	for _, f := range feeds {
		if !f.forgotten && f.paused != full && f.full.Load() == full {
			m = add(m, f)
		}
	}
	return m
}

// forget resumes what is paused of a feed for good.
func (g *gate) forget(f *feed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.forgotten = true
	if f.paused {
		g.client.ResumeFetchPartitions(add(nil, f))
	}
}

func add(m map[string][]int32, f *feed) map[string][]int32 {
	if m == nil {
		m = map[string][]int32{}
	}
	m[f.topic] = append(m[f.topic], f.lane.partition)
	f.paused = !f.paused
	return m
}

func (c *Consumer) gateOf(f *feed) *gate {
	if f.isSource() {
		return &c.sourceGate
	}
	return &c.retryGate
}
