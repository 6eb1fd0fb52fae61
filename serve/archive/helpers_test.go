package archive

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// parse parses a target in the file system.
func parse(t *testing.T, text string) *Target {
	t.Helper()
	target, err := Parse(text, S3{})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// lines writes these bytes, as one letter.
func lines(text []byte) func(io.Writer) (int64, error) {
	return func(w io.Writer) (int64, error) {
		_, err := w.Write(text)
		return 1, err
	}
}

// readAll returns what an archive has, read twice, as an import does.
func readAll(t *testing.T, text string) []byte {
	t.Helper()
	r, err := Open(t.Context(), text, S3{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	begin, err1 := r.Seek(0, io.SeekCurrent)
	first, err2 := io.ReadAll(r)
	_, err3 := r.Seek(begin, io.SeekStart)
	second, err4 := io.ReadAll(r)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("%s is read as %d bytes, and then as %d others", text, len(first), len(second))
	}
	return first
}
