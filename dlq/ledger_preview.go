package dlq

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ImportPreview is what an import of a file into a topic would do.
type ImportPreview struct {
	// Copies is how many letters of the file are duplicates (see [Ledger.Letters]) of letters in
	// the topic or earlier in the file. They reopen nothing: each is resolved with the first
	// letter.
	Copies int64
	// Reopened counts, by state, the letters that were exported from this topic and are resolved
	// there, and are no duplicates. Imported, they are open.
	Reopened map[State]int64
	// Broken is the error of the first broken line of the file, if any. Nothing of such a file is
	// imported; the counts are of the lines before it.
	Broken error
}

// PreviewImport returns what an [Import] of a file into the topic would do now. It reads all of the
// topic, and the ledger if that was not read yet. It restores the position of file. progress, if
// not nil, is called with the number of offsets of the topic that were read, and their total.
func (l *Ledger) PreviewImport(ctx context.Context, file io.ReadSeeker, progress func(read, total int64)) (ImportPreview, error) {
	o := ImportPreview{Reopened: map[State]int64{}}
	if err := l.ensure(ctx); err != nil {
		return o, err
	}
	begin, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return o, fmt.Errorf("dlq: preview an import into %q: the input can't be read twice, save it to a file first: %w", l.topic, err)
	}
	j := newJudge(l, false)
	s := scan{topic: l.topic, opts: l.opts, progress: progress}
	if _, err := s.all(ctx, Cursor{}, func(r *kgo.Record) { j.state(r) }); err != nil {
		return o, fmt.Errorf("dlq: read %q: %w", l.topic, err)
	}
	now := time.Now()
	for _, p := range exportLines(file, false) {
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		if o.Broken = p.err; p.err != nil {
			break
		}
		r := p.record
		if j.unresolved(r, now, false) != noCopy {
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
