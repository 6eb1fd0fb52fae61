package consumer

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchPauser pauses and resumes the fetches of one client.
//
// The poll loop finds a feed full, and a worker finds that it has room again. These are different
// goroutines, and their calls may come in either order. So neither says "pause" or "resume": they
// set fetch.full under the lane's lock, and the pauser compares it with what kgo was told. The last
// call sees the final word.
//
// In kgo a pause outlives the assignment (it is a set of names), so the fetch of a lane that is
// gone is resumed. See DESIGN.md, "Pausing fetches".
type fetchPauser struct {
	mu     sync.Mutex
	client *kgo.Client
}

// fetch is the fetch of one partition.
type fetch struct {
	topic     string
	partition int32
	full      atomic.Bool // its feed has no room: it should be paused
	paused    bool        // it is; the pauser's, like closed
	closed    bool
}

func (g *fetchPauser) apply(fetches ...*fetch) {
	if len(fetches) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Each kind by itself: a fetch may be named twice, and change in between.
	if pause := changedPauses(fetches, true); pause != nil {
		g.client.PauseFetchPartitions(pause)
	}
	if resume := changedPauses(fetches, false); resume != nil {
		g.client.ResumeFetchPartitions(resume)
	}
}

// changedPauses notes the fetches that are to be as full says and are not, and lists them for kgo.
func changedPauses(fetches []*fetch, full bool) (m map[string][]int32) {
	for _, f := range fetches {
		if !f.closed && f.paused != full && f.full.Load() == full {
			m = addPause(m, f)
		}
	}
	return m
}

// close resumes a fetch for good.
func (g *fetchPauser) close(f *fetch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.closed = true
	if f.paused {
		g.client.ResumeFetchPartitions(addPause(nil, f))
	}
}

func addPause(m map[string][]int32, f *fetch) map[string][]int32 {
	if m == nil {
		m = map[string][]int32{}
	}
	m[f.topic] = append(m[f.topic], f.partition)
	f.paused = !f.paused
	return m
}
