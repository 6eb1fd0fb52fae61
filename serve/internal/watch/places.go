package watch

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// readsAtOnce bounds how many large topics are read at the same time: each holds an answer of
	// the brokers in memory, of 2 MiB.
	readsAtOnce = 2
	// smallAtOnce bounds how many small topics are read at the same time. Nearly all of that time
	// is waiting: over a slow link each takes a dozen round trips. So their answers are small ones,
	// and all together hold as much in memory as one of a large topic.
	smallAtOnce = 32
	smallBytes  = 64 << 10
	// smallRecords is how many records of a topic and its ledger a small one has to be read.
	smallRecords = 1000
	// silentFor is how long nothing may come of a topic until it gives its place back. An answer of
	// 2 MiB comes within it over 7 Mbit/s, shared by two. A client takes a minute to give up.
	silentFor = 5 * time.Second
	// readsBeside bounds how many silent topics are read on beside the places. Over a link that is
	// slower than that they are no more silent, and share it.
	readsBeside = 30
)

// readPlaces are what topics hold while they are read. Small ones have places of their own, and
// those that could not be read last time have one. Of a topic whose brokers are silent nothing is
// held in memory, so it soon makes room for others: its read goes on beside the places. A topic of
// which something comes keeps its place, however long it takes.
type readPlaces struct {
	small, large, again, beside chan struct{} // have an element for each topic
}

func newReadPlaces() readPlaces {
	return readPlaces{
		small: make(chan struct{}, smallAtOnce), large: make(chan struct{}, readsAtOnce), again: make(chan struct{}, 1), beside: make(chan struct{}, readsBeside),
	}
}

// read waits for a place, and reads. isSmall says that the topic is small, again that the last read
// failed. records returns how many records were read, of all reads so far. The error is that of
// read, or of ctx while it waits.
func (p *readPlaces) read(ctx context.Context, isSmall, again bool, records func() uint64, read func(tuned ...kgo.Opt) error) error {
	place := p.large
	var tuned []kgo.Opt
	if isSmall {
		place = p.small
		tuned = []kgo.Opt{kgo.FetchMaxBytes(smallBytes), kgo.FetchMaxPartitionBytes(smallBytes)}
	}
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
	go func() { ended <- read(tuned...) }()
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
