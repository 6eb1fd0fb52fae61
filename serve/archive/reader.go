package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Reader reads the lines of archives, one archive after the other. It can begin anew, as
// [dlq.Import] needs it, and nothing else of [io.Seeker]. It is not safe for concurrent use.
type Reader struct {
	ctx   context.Context
	store store
	names []string
	label string

	next int           // index of the archive after the one that is open
	from io.ReadCloser // the open one; nil if none is
	in   io.Reader     // its lines
	at   int64
}

// Open opens an archive, or all of a folder in the order of their names: a path, or
// s3://bucket/key. ctx ends its reads, too.
func Open(ctx context.Context, text string, s S3) (*Reader, error) {
	t, err := Parse(text, s)
	if err != nil {
		return nil, err
	}
	r := &Reader{ctx: ctx, store: t.store, names: []string{t.name}, label: text}
	if t.folder {
		if r.names, err = t.store.list(ctx, t.name); err == nil && len(r.names) == 0 {
			err = errors.New("there is no archive: their names end in .jsonl or .jsonl.gz")
		}
		if err != nil {
			return nil, fmt.Errorf("archive: open %s: %w", text, err)
		}
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// Name returns what was opened.
func (r *Reader) Name() string { return r.label }

// begin opens the next archive.
func (r *Reader) begin() error {
	name := r.names[r.next]
	fail := func(err error) error { return fmt.Errorf("archive: open %s: %w", r.store.location(name), err) }
	from, err := r.store.open(r.ctx, name)
	if err != nil {
		return fail(err)
	}
	in := bufio.NewReaderSize(from, 64<<10)
	r.from, r.in = from, in
	r.next++
	// An operator may have saved an archive under another name.
	if begins, _ := in.Peek(2); bytes.Equal(begins, []byte{0x1f, 0x8b}) {
		if r.in, err = gzip.NewReader(in); err != nil {
			return fail(err)
		}
	}
	return nil
}

// Read implements [io.Reader].
func (r *Reader) Read(b []byte) (int, error) {
	for {
		if r.from == nil {
			if r.next == len(r.names) {
				return 0, io.EOF
			}
			if err := r.begin(); err != nil {
				return 0, err
			}
		}
		n, err := r.in.Read(b)
		r.at += int64(n)
		if errors.Is(err, io.EOF) {
			err = r.Close()
		} else if err != nil {
			err = fmt.Errorf("archive: read %s: %w", r.store.location(r.names[r.next-1]), err)
		}
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// Seek implements [io.Seeker] for two cases: it returns where the reader is, and it goes back to
// the beginning.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekCurrent && offset == 0, whence == io.SeekStart && offset == r.at:
		return r.at, nil
	case whence != io.SeekStart || offset != 0:
		return 0, fmt.Errorf("archive: %s can be read from its beginning only", strings.TrimSuffix(r.label, "/"))
	}
	err := r.Close()
	r.next, r.at = 0, 0
	return 0, err
}

// Close closes the archive.
func (r *Reader) Close() (err error) {
	if r.from != nil {
		err = r.from.Close()
		r.from, r.in = nil, nil
	}
	return err
}
