package redrive

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
	// readBatch is how many letters are handed over at once.
	readBatch = 512
	// readBytes is how many bytes are handed over at once at most, or one letter that is larger.
	readBytes = 512 << 10
	// readWait is how long the first of them waits for the others, while more come.
	readWait = 10 * time.Millisecond
	// fetchBytes bounds an answer of a broker, compressed as it is: one stays in memory beside the
	// letters that are handed over, and a slow connection has to carry it within the time that the
	// client gives a request.
	fetchBytes = 2 << 20
)

// reading is what the reader of letters has found: letters that are ready, letters that cannot be
// sent, or its end.
type reading struct {
	ready   []*outgoing
	bytes   int64 // of these
	skipped []skip
	err     error       // it goes on after a moment
	end     bool        // nothing more comes
	missing letters.Set // with end: those that are not there any more
}

// skip is a letter that is not sent.
type skip struct {
	at  letters.Place
	why string
	err error
}

// readLetters reads what is left of the selection, and makes the copies. The channel is closed when
// that has ended, which it does when ctx ends at the latest. It looks at the run as it is now: what
// becomes of that is the engine's to write down.
func readLetters(ctx context.Context, h *ownedRun, buffered *memoryBudget) <-chan reading {
	own, rec := *h, *h.rec
	own.rec = &rec
	h = &own
	out := make(chan reading, 4)
	s := &source{ownedRun: h, copier: newCopier(h), todo: h.left.Clone(), buffered: buffered, out: out}
	go func() {
		defer close(out)
		defer s.copier.originals.close()
		for ctx.Err() == nil {
			if s.read(ctx) {
				s.hand(ctx, reading{end: true, missing: s.todo})
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
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
	since time.Time // when the batch was begun
}

func (s *source) hand(ctx context.Context, r reading) bool {
	select {
	case s.out <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// flush hands over what there is.
func (s *source) flush(ctx context.Context) bool {
	if len(s.batch.ready)+len(s.batch.skipped) == 0 {
		return true
	}
	ok := s.buffered.take(ctx, s.batch.bytes) && s.hand(ctx, s.batch)
	s.batch = reading{}
	return ok
}

// read reads to the end of the selection, unless something keeps it from that.
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
	// asked once a letter came: a client that reads a topic does not go on with another one of its
	// name
	same := false
	opts := append([]kgo.Opt{kgo.FetchMaxBytes(fetchBytes)}, s.r.cfg.Kafka...)
	for r, err := range dlq.Records(ctx, s.topics.dlq, ranges, opts...) {
		err = permission.Denied("READ", "topic", s.topics.dlq, err)
		if err == nil && !same {
			if same = s.still(ctx); !same {
				return false
			}
		}
		if err == nil && !s.todo.Remove(letters.At(r.Partition, r.Offset)) {
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
		switch {
		case n >= readBatch || s.batch.bytes >= readBytes || n%32 == 0 && time.Since(s.since) > readWait:
			if !s.flush(ctx) {
				return false
			}
		}
	}
	return (same || s.still(ctx)) && s.flush(ctx) && whole
}

// still reports whether the topic is the one that the run is about, and says so if it is not, or
// that is not known.
func (s *source) still(ctx context.Context) bool {
	err := s.sameTopics(ctx)
	return err == nil || s.hand(ctx, reading{err: err}) && false
}

// take takes a letter into the batch. An error says that the broker has to be asked again.
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

// sameTopics makes sure that the dead-letter topic is the one that the run is about, and finds out
// which topic the target is by now.
func (s *source) sameTopics(ctx context.Context) error {
	adm, err := client.NewAdmin(s.r.cfg.Kafka...)
	if err != nil {
		return err
	}
	defer adm.Close()
	names := []string{s.topics.dlq}
	if !s.rec.toTier() {
		names = append(names, s.rec.Target.Topic)
	}
	found, err := adm.ListTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	if !s.rec.toTier() {
		s.copier.targetID = found[s.rec.Target.Topic].ID
	}
	return s.ownedRun.sameTopic(found)
}
