package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// The places of fields in a batch of records, and the length of what stands before its length.
const (
	batchLengthAt = 8
	batchHead     = 12
	// mostLost bounds the bytes that a partition loses.
	mostLost = 16 << 10
)

// cutLog takes the last batches from a partition's file, mostLost bytes at most and no more than a
// half, and returns the first offset that is gone; ok is false if that would be nothing.
func cutLog(file string) (from int64, ok bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false, err
	}
	least := max(len(text)-mostLost, len(text)/2)
	for at := 0; at+batchHead <= len(text); {
		if at >= least {
			return int64(binary.BigEndian.Uint64(text[at:])), true, os.Truncate(file, int64(at))
		}
		at += batchHead + int(binary.BigEndian.Uint32(text[at+batchLengthAt:]))
	}
	return 0, false, nil
}

// older kills the broker's process, takes the end of a partition's log, and starts another on the
// rest, with a leader epoch above those that were lost: as after an unclean election. gone is
// called while no broker runs.
func (e *embedded) older(of trace.TP, gone func(from int64)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unreachable(true)
	defer e.unreachable(false)
	epochs, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	e.proc.Kill()
	<-time.After(500 * time.Millisecond) // an election takes as long
	from, ok, err := cutLog(filepath.Join(e.job.Dir, "partitions", fmt.Sprintf("%s-%d", of.Topic, of.Partition), "0.dat"))
	if err == nil && ok {
		gone(from)
	}
	if started := e.start(); started != nil {
		return started
	}
	if err != nil {
		return err
	}
	epochs[of]++
	return e.raiseEpochs(epochs)
}

// raiseEpochs gives each partition a leader epoch that is not below the given one. The embedded
// broker forgets epochs when it is killed, and begins with those of the last records, as no Kafka
// does: members would take the records in place of a lost end for those that they had finished.
func (e *embedded) raiseEpochs(to map[trace.TP]int32) error {
	now, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	var missing int32
	for at, epoch := range to {
		if is, ok := now[at]; ok {
			missing = max(missing, epoch-is)
		}
	}
	for ; missing > 0 && err == nil; missing-- {
		err = e.give(order{Op: "shuffle"}) // raises all epochs by one
	}
	return err
}

// leaderEpochs asks the broker for the partitions' leader epochs.
func (e *embedded) leaderEpochs() (now map[trace.TP]int32, err error) {
	cl, err := kgo.NewClient(e.options(true)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	admin := kadm.NewClient(cl)
	all, err := admin.Metadata(ctx)
	for ; err != nil || all.Topics.Error() != nil; all, err = admin.Metadata(ctx) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, all.Topics.Error())
		case <-time.After(100 * time.Millisecond): // a fault that answers with errors passes
		}
	}
	now = map[trace.TP]int32{}
	for _, t := range all.Topics {
		for _, p := range t.Partitions {
			now[trace.TP{Topic: p.Topic, Partition: p.Partition}] = p.LeaderEpoch
		}
	}
	return now, nil
}

// unreachable makes all nodes unreachable for the members, or ends that.
func (e *embedded) unreachable(on bool) {
	for _, p := range e.proxies {
		p.set(func(p *proxy) { p.down = on })
		if on {
			p.cut()
		}
	}
}
