package serve

import (
	"context"
	"time"
)

const (
	// readsAtOnce bounds how many topics are read at the same time: each holds an answer of the
	// brokers in memory.
	readsAtOnce = 2
	// silentFor is how long nothing may come of a topic until it gives its place back. An answer of
	// 2 MiB comes within it over 7 Mbit/s, shared by two. A client takes a minute to give up.
	silentFor = 5 * time.Second
	// readsBeside bounds how many silent topics are read on beside the places. Over a link that is
	// slower than that they are no more silent, and share it.
	readsBeside = 30
)

// readPlaces are what topics hold while they are read. Those that could not be read last time have
// a place of their own. Of a topic whose brokers are silent nothing is held in memory, so it soon
// makes room for others: its read goes on beside the places. A topic of which something comes keeps
// its place, however long it takes.
type readPlaces struct {
	first, again, beside chan struct{} // have an element for each topic
}

func newReadPlaces() readPlaces {
	return readPlaces{first: make(chan struct{}, readsAtOnce), again: make(chan struct{}, 1), beside: make(chan struct{}, readsBeside)}
}

// read waits for a place, and reads. again says that the last read failed. records returns how many
// records were read, of all reads so far. The error is that of read, or of ctx while it waits.
func (p *readPlaces) read(ctx context.Context, again bool, records func() uint64, read func() error) error {
	place := p.first
	if again {
		place = p.again
	}
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-place }()
	ended := make(chan error, 1)
	go func() { ended <- read() }()
	look := time.NewTicker(silentFor)
	defer look.Stop()
	for seen := records(); ; {
		select {
		case err := <-ended:
			return err
		case <-look.C:
		}
		was := seen
		if seen = records(); seen != was || place == p.beside {
			continue
		}
		select {
		case p.beside <- struct{}{}:
			<-place
			place = p.beside
		default: // it keeps its place until there is room
		}
	}
}
