package archive

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func save(t *testing.T, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Compression is recognized by the bytes, whatever the name says, and a file that is cut short is
// an error.
func TestReader_RecognizesCompression(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err1 := z.Write([]byte("a line\n"))
	if err2 := z.Close(); err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for name, text := range map[string][]byte{"a.jsonl": packed.Bytes(), "a.gz": []byte("a line\n")} {
		if got := string(readAll(t, save(t, name, text))); got != "a line\n" {
			t.Errorf("%s has %q", name, got)
		}
	}
	name := save(t, "a.jsonl.gz", packed.Bytes()[:packed.Len()-4])
	r, err := Open(t.Context(), name, S3{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "read "+name) {
		t.Errorf("a file that is cut short ends with %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpen_NamesWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		t.TempDir():    "there is no archive",
		os.DevNull:     "is not a regular file: import reads it twice",
		"/absent/file": "no such file",
	} {
		if _, err := Open(t.Context(), text, S3{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	r, err := Open(t.Context(), save(t, "a", []byte("a line\n")), S3{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Seek(3, io.SeekStart); err == nil {
		t.Error("it can be read from its middle")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
