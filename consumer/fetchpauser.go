package consumer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchPauser pauses and resumes the fetches of one client.
//
// The poll loop finds a feed full, and a worker finds room in it again. They are different
// goroutines, so their calls may come in either order. Neither therefore asks for a pause or a
// resume: they set fetch.full under the lane's lock, and the pauser compares it with the state in
// kgo. The last call sees the final value. The same goes for fetch.astray
// and fetch.refused.
//
// In kgo a pause outlives the assignment, because it is a set of names. So close resumes the fetch
// of a closed lane. See DESIGN.md, "Pausing fetches".
type fetchPauser struct {
	mu     sync.Mutex
	client *kgo.Client
}

// fetch is the fetch of one partition.
type fetch struct {
	topic     string
	partition int32
	full      atomic.Bool // its feed has no room, so it should be paused
	astray    atomic.Bool // its position is outside of the log, so it should be paused
	refused   atomic.Bool // its last fetch was refused, so it should be paused for a while
	paused    bool        // kgo has paused it; the pauser's lock guards it, and closed
	closed    bool
}

func (g *fetchPauser) apply(fetches ...*fetch) {
	if len(fetches) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// One kind at a time: fetches may hold a fetch twice, and its flags may change in between.
	if pause := changedPauses(fetches, true); pause != nil {
		g.client.PauseFetchPartitions(pause)
	}
	if resume := changedPauses(fetches, false); resume != nil {
		g.client.ResumeFetchPartitions(resume)
	}
}

// rest pauses a fetch that was refused for a while.
func (g *fetchPauser) rest(f *fetch, wait time.Duration) {
	if !f.refused.CompareAndSwap(false, true) {
		return // the answer to a fetch that was under way
	}
	g.apply(f)
	time.AfterFunc(wait, func() {
		f.refused.Store(false)
		g.apply(f)
	})
}

func (f *fetch) shouldPause() bool { return f.full.Load() || f.astray.Load() || f.refused.Load() }

// changedPauses returns for kgo the fetches whose pause must change, and marks them changed.
func changedPauses(fetches []*fetch, pause bool) (m map[string][]int32) {
	for _, f := range fetches {
		if !f.closed && f.paused != pause && f.shouldPause() == pause {
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
