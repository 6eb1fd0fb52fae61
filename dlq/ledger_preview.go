package dlq

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ImportPreview is what an import of a file would do to a topic.
type ImportPreview struct {
	// Letters are those of the file.
	Letters int64
	// Copies are those among them that the topic holds, or that the file has twice, see
	// [Ledger.Letters]: they share the fate of the one that was first, so that nothing
	// becomes open by them.
	Copies int64
	// Reopened are those of this topic that had an outcome at the place where they
	// were, by what it was. Imported, they are open.
	Reopened map[State]int64
	// Broken says what is wrong with a line of the file. Nothing of such a file is
	// imported; the counts are of what comes before the line.
	Broken error
}

// PreviewImport says what an [Import] of a file into the topic would do to it, as it is now,
// and leaves the file where it stood. It reads all of the topic, and the ledger if it
// was not read before. progress, if not nil, is told how many offsets of the topic of
// how many were passed.
func (l *Ledger) PreviewImport(ctx context.Context, file io.ReadSeeker, progress func(read, total int64)) (ImportPreview, error) {
	o := ImportPreview{Reopened: map[State]int64{}}
	if err := l.ensure(ctx); err != nil {
		return o, err
	}
	begin, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return o, fmt.Errorf("dlq: preview an import into %q: the input can't be read twice, save it to a file first: %w", l.topic, err)
	}
	j, err := l.judged(ctx, progress)
	if err != nil {
		return o, err
	}
	now := time.Now()
	for _, p := range exportLines(file) {
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		if o.Broken = p.err; p.err != nil {
			break
		}
		o.Letters++
		r := p.record
		if j.unresolved(r, now) != noCopy {
			o.Copies++
		} else if state := l.State(r.Partition, r.Offset); r.Topic == l.topic && state.Resolves() {
			o.Reopened[state]++
		}
	}
	if _, err := file.Seek(begin, io.SeekStart); err != nil {
		return o, fmt.Errorf("dlq: preview an import into %q: %w", l.topic, err)
	}
	return o, nil
}

// judged has seen all letters of the topic.
func (l *Ledger) judged(ctx context.Context, progress func(read, total int64)) (*judge, error) {
	j := newJudge(l, false)
	s := scan{topic: l.topic, opts: l.opts, progress: progress}
	if _, err := s.all(ctx, Cursor{}, func(r *kgo.Record) { j.state(r) }); err != nil {
		return nil, fmt.Errorf("dlq: read %q: %w", l.topic, err)
	}
	return j, nil
}
