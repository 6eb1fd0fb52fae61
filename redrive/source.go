package redrive

import (
	"context"
	"errors"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/offsetset"
)

// readBatch is how many letters are handed over at once.
const readBatch = 256

// reading is what the reader of letters has to tell: some that are ready to go, some that can't, or how it ended.
type reading struct {
	ready   []*outgoing
	skipped []skip
	err     error // it goes on after a moment
	end     bool
}

// skip is a letter that is not sent.
type skip struct {
	at  place
	why string
	err error
}

// readLetters reads what is left of the selection, and makes the copies.
func (h *held) readLetters(ctx context.Context) <-chan reading {
	out := make(chan reading, 8)
	todo := h.left.clone()
	go func() {
		for ctx.Err() == nil {
			if h.readOnce(ctx, todo, out) {
				hand(ctx, out, reading{end: true})
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

func hand(ctx context.Context, out chan<- reading, r reading) bool {
	select {
	case out <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// readOnce reads to the end of the selection, unless something keeps it from that.
func (h *held) readOnce(ctx context.Context, todo selection, out chan<- reading) (whole bool) {
	f := dlq.Filter{Match: func(l *dlq.Letter) bool { return todo.has(l.Record.Partition, l.Record.Offset) }}
	for p, set := range todo {
		if least, ok := set.Min(); ok {
			most, _ := set.Max()
			f.Ranges = append(f.Ranges, dlq.Range{Partition: p, From: least, Until: most + 1})
		}
	}
	if len(f.Ranges) == 0 {
		return true
	}
	var batch reading
	same := false
	still := func() bool { // asked once a letter came: a client that reads a topic does not go on with another one of its name
		if same {
			return true
		}
		err := h.still(ctx)
		if same = err == nil; !same {
			hand(ctx, out, reading{err: err})
		}
		return same
	}
	flush := func() bool {
		if len(batch.ready)+len(batch.skipped) == 0 {
			return true
		}
		ok := hand(ctx, out, batch)
		batch = reading{}
		return ok
	}
	whole = true
	since := time.Now()
	for l, err := range dlq.Read(ctx, h.topics.dlq, f, dlq.Cursor{}, h.r.cfg.Kafka...) {
		if err != nil {
			whole = false
			if !flush() || !hand(ctx, out, reading{err: err}) {
				return false
			}
			continue
		}
		if !still() {
			return false
		}
		o, why, err := h.prepare(ctx, l)
		if ctx.Err() != nil {
			return false
		}
		if o == nil && why == "" { // to be tried again
			whole = false
			if !hand(ctx, out, reading{err: err}) {
				return false
			}
			continue
		}
		todo.remove(l.Record.Partition, l.Record.Offset)
		at := place{l.Record.Partition, l.Record.Offset}
		if o == nil {
			batch.skipped = append(batch.skipped, skip{at, why, err})
		} else {
			batch.ready = append(batch.ready, o)
		}
		if len(batch.ready)+len(batch.skipped) >= readBatch || time.Since(since) > 10*time.Millisecond {
			if !flush() {
				return false
			}
			since = time.Now()
		}
	}
	return still() && flush() && whole
}

// prepare makes the copy of a letter, or says why it is not sent; neither if the broker has to be asked again.
func (h *held) prepare(ctx context.Context, l *dlq.Letter) (o *outgoing, skipped string, err error) {
	rec := h.rec
	value := l.Record.Value
	if l.Meta.ValueOmitted && rec.Edit.Value == nil {
		if value, err = h.r.originalValue(ctx, l.Meta.Original); errors.Is(err, errValueLost) {
			return nil, SkippedValueLost, err
		} else if err != nil {
			return nil, "", err
		}
	}
	kept, value, err := rec.Edit.Apply(headers.Strip(l.Record.Headers), value, h.r.cfg.MergePatch)
	if err != nil {
		return nil, SkippedEdit, err
	}
	partition := homeOf(l, h.topics.source)
	topic := rec.Target.Topic
	if rec.toTier() {
		topic = rec.Tiers[destination{l.Meta.Group, partition}.String()]
		if topic == "" {
			return nil, SkippedNoGroup, nil
		}
	}
	return &outgoing{letter: l, copy: rec.copyOf(l, kept, value, topic, partition, time.Now()), edited: rec.Edit.what()}, "", nil
}

func (s selection) clone() selection {
	c := make(selection, len(s))
	for p, set := range s {
		copied := &offsetset.Set{}
		for o := range set.All() {
			copied.Add(o)
		}
		c[p] = copied
	}
	return c
}
