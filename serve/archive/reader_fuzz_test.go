package archive

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// mostRead bounds what a test reads: few bytes can be packed from many.
const mostRead = 1 << 20

// Whatever bytes a file has: they are read twice with the same result, as an import reads them;
// what is not packed comes as it is, and what is packed comes unpacked, or with an error.
func FuzzReader_ReadsTwiceTheSame(f *testing.F) {
	pack := func(text string) []byte {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err1 := z.Write([]byte(text))
		if err2 := z.Close(); err1 != nil || err2 != nil {
			f.Fatal(err1, err2)
		}
		return packed.Bytes()
	}
	one := pack("a line\n")
	for _, b := range [][]byte{nil, []byte("a line\n"), one, append(one[:len(one):len(one)], pack("another\n")...), one[:len(one)-4], one[:3], {0x1f, 0x8b}, {0x1f}, append(one[:len(one):len(one)], "rest"...)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "a.jsonl")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		packed := bytes.HasPrefix(b, []byte{0x1f, 0x8b})
		r, err := Open(t.Context(), name, S3{})
		if err != nil {
			if !packed {
				t.Errorf("%q cannot be opened: %v", b, err)
			}
			return
		}
		defer func() { _ = r.Close() }()
		read := func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, mostRead)) }
		first, err1 := read()
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		second, err2 := read()
		if n, _ := r.Read(nil); n != 0 {
			t.Errorf("%d bytes are read into none", n)
		}
		if !bytes.Equal(first, second) || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q is read as %q, %v, and then as %q, %v", b, first, err1, second, err2)
		}
		if !packed && (err1 != nil || !bytes.Equal(first, b[:min(len(b), mostRead)])) {
			t.Errorf("%q is read as %q, %v", b, first, err1)
		}
	})
}
