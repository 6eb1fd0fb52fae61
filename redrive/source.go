package redrive

// Reads the letters of a plan.

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

const (
	// readBatch is the most letters that are handed over at once.
	readBatch = 512
	// readBytes is the most bytes that are handed over at once; a larger letter goes alone.
	readBytes = 512 << 10
	// readWait is how long the first letter of a batch waits for others.
	readWait = 10 * time.Millisecond
)

// reading is a message of the letters' reader: ready letters, skipped letters, an error, or the
// end.
type reading struct {
	ready   []*outgoing
	bytes   int64 // size of ready
	skipped []skip
	err     error       // the reader retries after a pause
	end     bool        // the last message
	missing letters.Set // with end: letters that the topic no longer has
}

// skip is a letter that is not sent, with the reason.
type skip struct {
	at  letters.Place
	why string
	err error
}

// readLetters reads the letters that are left of the selection, and makes their copies. It closes
// the channel at its end, at the latest when ctx ends.
func readLetters(ctx context.Context, run *ownedRun, buffered *memoryBudget) <-chan reading {
	run = run.snapshot()
	out := make(chan reading, 4)
	s := &source{ownedRun: run, copier: newCopier(run), todo: run.left.Clone(), buffered: buffered, out: out}
	go func() {
		defer close(out)
		defer s.copier.originals.close()
		for ctx.Err() == nil {
			if s.read(ctx) {
				s.hand(ctx, reading{end: true, missing: s.todo})
				return
			}
			pause(ctx, time.Second)
		}
	}()
	return out
}

// source reads the letters of a run.
type source struct {
	*ownedRun
	copier *copier
	todo   letters.Set
	out    chan<- reading

	buffered *memoryBudget

	batch reading
	since time.Time // the begin of the batch
}

func (s *source) hand(ctx context.Context, r reading) bool {
	select {
	case s.out <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// flush hands over the batch.
func (s *source) flush(ctx context.Context) bool {
	if len(s.batch.ready)+len(s.batch.skipped) == 0 {
		return true
	}
	ok := s.buffered.take(ctx, s.batch.bytes) && s.hand(ctx, s.batch)
	s.batch = reading{}
	return ok
}

// read reads to the end of the selection. It reports false if an error or ctx ended the reading.
func (s *source) read(ctx context.Context) (whole bool) {
	var ranges []dlq.Range
	for p, set := range s.todo {
		if least, ok := set.Min(); ok {
			most, _ := set.Max()
			ranges = append(ranges, dlq.Range{Partition: p, From: least, Until: most + 1})
		}
	}
	if len(ranges) == 0 {
		return true
	}
	whole = true
	// checked after the first letter: a client that reads a topic does not switch to a recreated
	// one on its own
	same := false
	for r, err := range dlq.Records(ctx, s.topics.dlq, ranges, s.r.cfg.Kafka...) {
		if err == nil && !same {
			if same = s.still(ctx); !same {
				return false
			}
		}
		if err == nil && (s.isLater(r) || !s.todo.Remove(letters.At(r.Partition, r.Offset))) {
			continue
		}
		if err == nil {
			err = s.take(ctx, r)
		}
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			whole = false
			err = permission.Denied("READ", "topic", s.topics.dlq, err)
			if !s.flush(ctx) || !s.hand(ctx, reading{err: err}) {
				return false
			}
			continue
		}
		n := len(s.batch.ready) + len(s.batch.skipped)
		if n == 1 {
			s.since = time.Now()
		}
		full := n >= readBatch || s.batch.bytes >= readBytes || n%32 == 0 && time.Since(s.since) > readWait
		if full && !s.flush(ctx) {
			return false
		}
	}
	return (same || s.still(ctx)) && s.flush(ctx) && whole
}

// isLater reports whether a letter came after the run's claim, at the offset of one that brokers
// have lost since.
func (s *source) isLater(r *kgo.Record) bool {
	epochs := s.rec.Epochs[r.Partition]
	return epochs > 0 && r.LeaderEpoch >= epochs
}

// still reports whether the topic is still the run's topic. It hands over the error if not, or if
// that is unknown.
func (s *source) still(ctx context.Context) bool {
	err := s.sameTopics(ctx)
	return err == nil || s.hand(ctx, reading{err: err}) && false
}

// take adds a letter to the batch. After an error the letter has to be taken again.
func (s *source) take(ctx context.Context, r *kgo.Record) error {
	if s.batch.ready == nil {
		s.batch.ready = make([]*outgoing, 0, readBatch)
	}
	o, why, err := s.copier.copy(ctx, r)
	switch {
	case o != nil:
		s.batch.ready = append(s.batch.ready, o)
		s.batch.bytes += int64(o.measure())
	case why != "":
		s.batch.skipped = append(s.batch.skipped, skip{letters.At(r.Partition, r.Offset), why, err})
	default:
		s.todo.Add(letters.At(r.Partition, r.Offset))
		return err
	}
	return nil
}

// sameTopics checks that the dead-letter topic is the run's topic, and reads the target's present
// id, and how many partitions there are.
func (s *source) sameTopics(ctx context.Context) error {
	adm, err := client.NewAdmin(s.r.cfg.Kafka...)
	if err != nil {
		return err
	}
	defer adm.Close()
	names, lanes := []string{s.topics.dlq}, s.topics.source
	if !s.rec.toTier() {
		lanes = s.rec.Target.Topic
		names = append(names, lanes)
	}
	found, err := adm.ListTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	if !s.rec.toTier() {
		s.copier.targetID = found[lanes].ID
	}
	if s.copier.partitions, err = partitionsOf(ctx, adm, lanes); err != nil {
		return err
	}
	return s.ownedRun.sameTopic(found)
}
