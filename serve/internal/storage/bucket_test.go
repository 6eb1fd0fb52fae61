package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// text writes these bytes.
func text(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// ways are how objects are written: as the one of a name, or under a name that no other object has.
var ways = map[string]bool{"a.jsonl": false, "folder/orders.dlq/a.jsonl.gz": true}

// sizes are bytes of an object, and how many requests at least its upload takes.
var sizes = []struct {
	bytes    []byte
	requests int
}{{nil, 1}, {[]byte("small\n"), 1}, {large, 5}}

// What is written is read back: also what is several parts of an object.
func TestBucket_WritesWhatIsReadBack(t *testing.T) {
	t.Parallel()
	for at, once := range ways {
		for _, size := range sizes {
			st := start(t)
			b := st.bucket(t)
			if err := b.Write(t.Context(), at, once, text(size.bytes)); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			r, err := b.Open(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, size.bytes) {
				t.Errorf("%s: %d bytes are read, want %d: %v", at, len(got), len(size.bytes), err)
			}
			all, err := b.List(t.Context(), "", func(string) bool { return true })
			if err != nil || !slices.Equal(all, []string{at}) || !slices.Equal(st.holds(t), all) {
				t.Errorf("the bucket has %q, %v, want %s", all, err, at)
			}
		}
	}
}

// Each request to the storage may be refused: whichever it is, Write fails, and nothing is left.
func TestBucket_LeavesNothingWhicheverRequestFails(t *testing.T) {
	t.Parallel()
	for at, once := range ways {
		for _, size := range sizes {
			st := start(t)
			b := st.bucket(t)
			n := 1
			for ; ; n++ {
				st.refuse(func(i int) bool { return i == n })
				err := b.Write(t.Context(), at, once, text(size.bytes))
				if err == nil {
					break // it takes fewer requests
				}
				if !strings.Contains(err.Error(), "403") {
					t.Errorf("request %d: %v", n, err)
				}
				st.wantNothing(t)
			}
			if n <= size.requests {
				t.Errorf("%s: %d requests failed, want at least %d", at, n-1, size.requests)
			}
		}
	}
}

// The storage may have completed an object whose answer was lost: no other object has that name, so
// it is removed.
func TestBucket_RemovesWhatWasWrittenWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		st := start(t)
		st.late = true
		b := st.bucket(t)
		n := 1
		for ; ; n++ {
			st.refuse(func(i int) bool { return i == n })
			if err := b.Write(t.Context(), "folder/a.jsonl.gz", true, text(size.bytes)); err == nil {
				break // it takes fewer requests
			}
			if names := st.holds(t); len(names) > 0 {
				t.Errorf("without the answer to request %d the storage has %q", n, names)
			}
		}
		if n <= size.requests {
			t.Errorf("%d requests failed, want at least %d", n-1, size.requests)
		}
	}
}

// What fails while it is written leaves nothing, also when parts of it are uploaded, and who stops
// the process leaves no upload behind.
func TestBucket_LeavesNothingOfAFailure(t *testing.T) {
	t.Parallel()
	failed := errors.New("the topic is gone")
	for at, once := range ways {
		for _, size := range sizes {
			st := start(t)
			b := st.bucket(t)
			err := b.Write(t.Context(), at, once, func(w io.Writer) error { return errors.Join(text(size.bytes)(w), failed) })
			if !errors.Is(err, failed) {
				t.Errorf("%s: %v", at, err)
			}
			st.wantNothing(t)
			ctx, cancel := context.WithCancel(t.Context())
			err = b.Write(ctx, at, once, func(w io.Writer) error {
				err := text(size.bytes)(w)
				cancel()
				return errors.Join(err, ctx.Err())
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s ends with %v", at, err)
			}
			st.wantNothing(t)
		}
	}
}
