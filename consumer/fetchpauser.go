package consumer

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchPauser pauses and resumes the fetches of one client.
//
// The poll loop finds a feed full, and a worker finds that it has room again. These are different
// goroutines, and their calls may come in either order. So neither says "pause" or "resume": they
// set feed.full under the lane's lock, and the pauser compares it with what kgo was told. The last
// call sees the final word.
//
// In kgo a pause outlives the assignment (it is a set of names), so the feed of a lane that is gone
// is resumed.
// See DESIGN.md, "Pausing fetches".
type fetchPauser struct {
	mu     sync.Mutex
	client *kgo.Client
}

func (g *fetchPauser) apply(feeds ...*feed) {
	if len(feeds) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Each kind by itself: a feed may be named twice, and change its mind in between.
	if pause := changedPauses(feeds, true); pause != nil {
		g.client.PauseFetchPartitions(pause)
	}
	if resume := changedPauses(feeds, false); resume != nil {
		g.client.ResumeFetchPartitions(resume)
	}
}

// changedPauses notes the feeds that are to be as full says and are not, and lists them for kgo.
func changedPauses(feeds []*feed, full bool) (m map[string][]int32) {
	for _, f := range feeds {
		if !f.closed && f.paused != full && f.full.Load() == full {
			m = addPause(m, f)
		}
	}
	return m
}

// close resumes what is paused of a feed for good.
func (g *fetchPauser) close(f *feed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.closed = true
	if f.paused {
		g.client.ResumeFetchPartitions(addPause(nil, f))
	}
}

func addPause(m map[string][]int32, f *feed) map[string][]int32 {
	if m == nil {
		m = map[string][]int32{}
	}
	m[f.topic] = append(m[f.topic], f.lane.partition)
	f.paused = !f.paused
	return m
}
