package archive

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// noise is bytes that do not get smaller when compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
}

// What is written is read back, from a file and from a folder.
func TestTarget_WritesWhatIsReadBack(t *testing.T) {
	t.Parallel()
	for _, where := range []string{filepath.Join(t.TempDir(), "aN.jsonl"), filepath.Join(t.TempDir(), "aN.jsonl.gz"), t.TempDir(), filepath.Join(t.TempDir(), "new", "folder") + "/"} {
		for i, text := range [][]byte{nil, []byte("a line\n"), noise(300 << 10)} {
			target := strings.Replace(where, "N", strconv.Itoa(i), 1)
			a, err := parse(t, target).Write(t.Context(), "orders.dlq", "", lines(text))
			if err != nil {
				t.Fatalf("%s: %v", target, err)
			}
			if got := readAll(t, a.Location); !bytes.Equal(got, text) {
				t.Errorf("%s: %d bytes are read, want %d", a.Location, len(got), len(text))
			}
			if a.Letters != 1 || a.SHA256 == "" || a.Bytes == 0 && len(text) > 0 {
				t.Errorf("%s: %+v", target, a)
			}
			if exact := strings.Contains(where, ".jsonl"); exact && a.Location != target || !exact && !strings.HasPrefix(a.Location, where) {
				t.Errorf("%s was written to %s", target, a.Location)
			}
		}
	}
}

// In a folder, names sort by time, and say of which topic the letters are.
func TestTarget_NamesSortByTime(t *testing.T) {
	t.Parallel()
	where := t.TempDir()
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	var want, names []string
	for range 5 {
		a, err := parse(t, where).Write(t.Context(), "orders.dlq", NewID(at), lines([]byte(at.String()+"\n")))
		if err != nil {
			t.Fatal(err)
		}
		want, names = append(want, at.String()+"\n"), append(names, a.Location)
		at = at.Add(7 * time.Hour)
	}
	if !slices.IsSorted(names) || !regexp.MustCompile(`/orders\.dlq/20261123T090000\.000Z-[0-9a-f]{8}\.jsonl\.gz$`).MatchString(names[0]) {
		t.Errorf("the names are %q", names)
	}
	// A folder is read in that order, also that of one topic.
	for _, folder := range []string{where, where + "/orders.dlq/"} {
		if got := string(readAll(t, folder)); got != strings.Join(want, "") {
			t.Errorf("%s has %q, want %q", folder, got, want)
		}
	}
	if _, err := Open(t.Context(), where+"/nothing/", S3{}); err == nil {
		t.Error("a folder without archives is opened")
	}
}

func TestTarget_OverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.jsonl")
	if _, err := parse(t, name).Write(t.Context(), "orders.dlq", "", lines([]byte("precious"))); err != nil {
		t.Fatal(err)
	}
	_, err := parse(t, name).Write(t.Context(), "orders.dlq", "", lines([]byte("other")))
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), name+" already exists and is never overwritten: choose another name") {
		t.Errorf("it ends with %v", err)
	}
	if got := string(readAll(t, name)); got != "precious" {
		t.Errorf("it has %q", got)
	}
	// Somebody else may take the name meanwhile.
	dir = t.TempDir()
	name = filepath.Join(dir, "a.jsonl")
	_, err = parse(t, name).Write(t.Context(), "orders.dlq", "", func(io.Writer) (int64, error) { return 1, os.WriteFile(name, []byte("precious"), 0o600) })
	if got, _ := os.ReadFile(name); !errors.Is(err, ErrExists) || string(got) != "precious" {
		t.Errorf("%v, and the file has %q", err, got)
	}
	wantFiles(t, dir, "a.jsonl")
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the directory has %q, %v; want %q", got, err, want)
	}
}

// Whatever fails, there is no archive, and nothing of one.
func TestTarget_LeavesNothingOfAFailure(t *testing.T) {
	t.Parallel()
	failed := errors.New("the topic is gone")
	short := func(w io.Writer) (int64, error) {
		_, err := w.Write(noise(100))
		return 1, errors.Join(err, failed)
	}
	long := func(w io.Writer) (int64, error) {
		_, err := w.Write(noise(300 << 10))
		return 1, errors.Join(err, failed)
	}
	for _, letters := range []func(io.Writer) (int64, error){short, long} {
		dir := t.TempDir()
		for _, target := range []*Target{parse(t, filepath.Join(dir, "a.jsonl")), parse(t, dir)} {
			if _, err := target.Write(t.Context(), ".", "id", letters); !errors.Is(err, failed) {
				t.Errorf("%s: %v", target, err)
			}
		}
		wantFiles(t, dir)
	}
	for _, where := range []string{filepath.Join(t.TempDir(), "absent", "a.jsonl"), filepath.Join(os.DevNull, "folder") + "/"} {
		if a, err := parse(t, where).Write(t.Context(), "orders.dlq", "", short); err == nil {
			t.Errorf("%s is written as %+v", where, a)
		}
	}
}

// A process that was killed within an archive left a file without its name. The next archive of the
// topic in the folder removes it when it is a day old, and nothing else.
func TestTarget_SweepsWhatTheKilledLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	topic := filepath.Join(dir, "orders.dlq")
	if err := os.Mkdir(topic, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{".old.jsonl.gz.17.part": 25 * time.Hour, ".new.jsonl.gz.17.part": 23 * time.Hour, ".old.zip.17.part": 25 * time.Hour, "old.jsonl.gz": 25 * time.Hour} {
		name = filepath.Join(topic, name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := parse(t, dir).Write(t.Context(), "orders.dlq", "next", lines([]byte("a line\n"))); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, topic, ".new.jsonl.gz.17.part", ".old.zip.17.part", "next.jsonl.gz", "old.jsonl.gz")
}

func TestParse_RefusesWhatIsNoLocation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":               "the location is empty",
		"s3://":          "is not s3://bucket/folder/",
		"s3:///key":      "is not s3://bucket/folder/",
		"s3://u:p@b/key": "is not s3://bucket/folder/",
		"gs://bucket/a":  "there is no storage gs://",
	} {
		if _, err := Parse(text, S3{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse_ReadsItsOwnString(f *testing.F) {
	for _, text := range []string{"a", "a/", "s3://b", "s3://b/", "s3://b/k/", "s3://b/k.jsonl.gz", "://", "s3://b//", "s3://b/../c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := Parse(text, S3{})
		if err != nil {
			return
		}
		again, err := Parse(target.String(), S3{})
		if err != nil || again.String() != target.String() {
			t.Errorf("%q is %q, which is read as %v, %v", text, target, again, err)
		}
	})
}
