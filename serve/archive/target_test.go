package archive

import (
	"bytes"
	"context"
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

	"github.com/minio/minio-go/v7"
)

// noise is bytes that do not get smaller when compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
}

// large returns what is three small parts of an object.
func large() []byte { return noise(2*smallPart + smallPart/4) }

// What is written is read back, from each kind of target: also what is
// several parts of an object.
func TestTarget_WritesWhatIsReadBack(t *testing.T) {
	t.Parallel()
	st := newStorage(t)
	for _, where := range []string{
		filepath.Join(t.TempDir(), "aN.jsonl"), filepath.Join(t.TempDir(), "aN.jsonl.gz"), t.TempDir(), filepath.Join(t.TempDir(), "new", "folder") + "/",
		"s3://letters/aN.jsonl", "s3://letters/a/bN.jsonl.gz", "s3://letters", "s3://letters/", "s3://letters/some/folder/",
	} {
		for i, text := range [][]byte{nil, []byte("a line\n"), large()} {
			target := strings.Replace(where, "N", strconv.Itoa(i), 1)
			a, err := parse(t, target, st.S3).Write(t.Context(), "orders.dlq", "", lines(text))
			if err != nil {
				t.Fatalf("%s: %v", target, err)
			}
			if got := readAll(t, a.Location, st.S3); !bytes.Equal(got, text) {
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

// The parts of an object have 8 MB, of which S3 takes 10,000.
func TestTarget_UploadsPartsOf8MB(t *testing.T) {
	t.Parallel()
	for bytes, parts := range map[int]int{8<<20 - 1: 0, 8<<20 + 1: 2, 16<<20 + 1: 3} {
		st := newStorage(t)
		target, err := Parse("s3://letters/a.jsonl", st.S3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := target.Write(t.Context(), "orders.dlq", "", lines(noise(bytes))); err != nil {
			t.Fatal(err)
		}
		want := 3 // HEAD, PUT of all, GET to verify
		if parts > 0 {
			want = 4 + parts // the upload is begun and completed
		}
		if got := st.count(); got != want {
			t.Errorf("%d bytes are uploaded by %d requests, want %d", bytes, got, want)
		}
	}
}

// In a folder, names sort by time, and say of which topic the letters are.
func TestTarget_NamesSortByTime(t *testing.T) {
	t.Parallel()
	st := newStorage(t)
	for _, where := range []string{t.TempDir(), "s3://letters/a/"} {
		at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
		var want, names []string
		for range 5 {
			a, err := parse(t, where, st.S3).Write(t.Context(), "orders.dlq", NewID(at), lines([]byte(at.String()+"\n")))
			if err != nil {
				t.Fatal(err)
			}
			want, names = append(want, at.String()+"\n"), append(names, a.Location)
			at = at.Add(7 * time.Hour)
		}
		if !slices.IsSorted(names) || !regexp.MustCompile(`a?/orders\.dlq/20261123T090000\.000Z-[0-9a-f]{8}\.jsonl\.gz$`).MatchString(names[0]) {
			t.Errorf("the names are %q", names)
		}
		// A folder is read in that order, also that of one topic.
		for _, folder := range []string{where, strings.TrimSuffix(where, "/") + "/orders.dlq/"} {
			if got := string(readAll(t, folder, st.S3)); got != strings.Join(want, "") {
				t.Errorf("%s has %q, want %q", folder, got, want)
			}
		}
		if _, err := Open(t.Context(), strings.TrimSuffix(where, "/")+"/nothing/", st.S3); err == nil {
			t.Error("a folder without archives is opened")
		}
	}
}

func TestTarget_OverwritesNothing(t *testing.T) {
	t.Parallel()
	st := newStorage(t)
	for _, where := range []string{filepath.Join(t.TempDir(), "a.jsonl"), "s3://letters/a.jsonl"} {
		if _, err := parse(t, where, st.S3).Write(t.Context(), "orders.dlq", "", lines([]byte("precious"))); err != nil {
			t.Fatal(err)
		}
		_, err := parse(t, where, st.S3).Write(t.Context(), "orders.dlq", "", lines([]byte("other")))
		if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), where+" already exists and is never overwritten: choose another name") {
			t.Errorf("%s: %v", where, err)
		}
		if got := string(readAll(t, where, st.S3)); got != "precious" {
			t.Errorf("%s has %q", where, got)
		}
	}
	// Somebody else may take the name meanwhile.
	dir := t.TempDir()
	name := filepath.Join(dir, "a.jsonl")
	_, err := parse(t, name, S3{}).Write(t.Context(), "orders.dlq", "", func(io.Writer) (int64, error) { return 1, os.WriteFile(name, []byte("precious"), 0o600) })
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
		_, err := w.Write(large())
		return 1, errors.Join(err, failed)
	}
	st := newStorage(t)
	for _, letters := range []func(io.Writer) (int64, error){short, long} {
		dir := t.TempDir()
		for _, target := range []*Target{parse(t, filepath.Join(dir, "a.jsonl"), S3{}), parse(t, dir, S3{}), parse(t, "s3://letters/b/", st.S3)} {
			if _, err := target.Write(t.Context(), ".", "id", letters); !errors.Is(err, failed) {
				t.Errorf("%s: %v", target, err)
			}
		}
		wantFiles(t, dir)
		wantNothing(t, st)
	}
	for _, where := range []string{filepath.Join(t.TempDir(), "absent", "a.jsonl"), filepath.Join(os.DevNull, "folder") + "/"} {
		if a, err := parse(t, where, S3{}).Write(t.Context(), "orders.dlq", "", short); err == nil {
			t.Errorf("%s is written as %+v", where, a)
		}
	}
}

// Each request to the storage may be refused: whichever it is, Write fails, and nothing is left.
func TestTarget_LeavesNothingWhicheverRequestFails(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"s3://letters/a.jsonl", "s3://letters/folder/"} {
		for _, text := range [][]byte{[]byte("small\n"), large()} {
			st := newStorage(t)
			target := parse(t, where, st.S3)
			n := 1
			for ; ; n++ {
				st.refuseNext(n)
				_, err := target.Write(t.Context(), "orders.dlq", "", lines(text))
				if err == nil {
					break // it takes fewer requests
				}
				if !strings.Contains(err.Error(), "s3://letters/") || !strings.Contains(err.Error(), "403") {
					t.Errorf("request %d: %v", n, err)
				}
				wantNothing(t, st)
			}
			if least := map[bool]int{true: 5, false: 2}[len(text) > smallPart]; n <= least {
				t.Errorf("%s: %d requests failed, want more than %d", where, n-1, least-1)
			}
		}
	}
}

// The storage may have completed an object whose answer was lost: no archive of the folder has that
// name, so it is removed.
func TestTarget_RemovesWhatWasWrittenWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, text := range [][]byte{[]byte("small\n"), large()} {
		st := newStorage(t)
		st.late = true
		target := parse(t, "s3://letters/folder/", st.S3)
		n := 1
		for ; ; n++ {
			st.refuseNext(n)
			if _, err := target.Write(t.Context(), "orders.dlq", "", lines(text)); err == nil {
				break // it takes fewer requests
			}
			if names, err := target.store.list(t.Context(), ""); err != nil || len(names) > 0 {
				t.Errorf("without the answer to request %d the storage has %q, %v", n, names, err)
			}
		}
		if least := map[bool]int{true: 5, false: 2}[len(text) > smallPart]; n <= least {
			t.Errorf("%d requests failed, want more than %d", n-1, least-1)
		}
	}
}

// A process that was killed within an archive left a file without its name, and an upload that was
// never completed: storage keeps such parts, and counts them. The next archive of the topic in the
// folder removes them when they are a day old, and nothing else.
func TestTarget_SweepsWhatTheKilledLeft(t *testing.T) {
	t.Parallel()
	st := newStorage(t)
	client := st.client(t)
	uploads := func() (keys []string) {
		all, err := client.ListMultipartUploads(t.Context(), "letters", "", "", "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, up := range all.Uploads {
			keys = append(keys, up.Key)
		}
		slices.Sort(keys)
		return keys
	}
	for _, key := range []string{"a/orders.dlq/old.jsonl.gz", "a/orders.dlq/old.zip", "a/orders.dlq.2/old.jsonl.gz"} {
		if _, err := client.NewMultipartUpload(t.Context(), "letters", key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
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
	if _, err := parse(t, dir, S3{}).Write(t.Context(), "orders.dlq", "next", lines([]byte("a line\n"))); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, topic, ".new.jsonl.gz.17.part", ".old.zip.17.part", "next.jsonl.gz", "old.jsonl.gz")
	if _, err := parse(t, "s3://letters/a/", st.S3).Write(t.Context(), "orders.dlq", "", lines([]byte("a line\n"))); err != nil {
		t.Fatal(err)
	}
	if left := uploads(); len(left) != 3 {
		t.Errorf("uploads of just now were aborted: %q stay", left)
	}
	b, err := newBucket("letters", st.S3)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.sweep(t.Context(), "a/orders.dlq", time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if left := uploads(); !slices.Equal(left, []string{"a/orders.dlq.2/old.jsonl.gz", "a/orders.dlq/old.zip"}) {
		t.Errorf("the uploads of others, and no more, were to stay: %q", left)
	}
}

// wantNothing checks that a storage has neither objects nor parts of such.
func wantNothing(t *testing.T, st *storage) {
	t.Helper()
	st.refuseNext(0)
	b, err := newBucket("letters", st.S3)
	if err != nil {
		t.Fatal(err)
	}
	names, err := b.list(t.Context(), "")
	if err != nil || len(names) > 0 {
		t.Errorf("the storage has %q, %v", names, err)
	}
	parts, err := st.client(t).ListMultipartUploads(t.Context(), "letters", "", "", "", "", 100)
	if err != nil {
		if !strings.Contains(err.Error(), "NoSuchUpload") && !strings.Contains(err.Error(), "404") {
			t.Error(err)
		}
	} else if len(parts.Uploads) > 0 {
		t.Errorf("%d uploads are not complete", len(parts.Uploads))
	}
}

// A storage may answer with other bytes than it got.
func TestTarget_VerifiesWhatIsRead(t *testing.T) {
	t.Parallel()
	for _, spoil := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		func([]byte) []byte { return nil },
	} {
		st := newStorage(t)
		st.spoil = spoil
		_, err := parse(t, "s3://letters/a/", st.S3).Write(t.Context(), "orders.dlq", "", lines([]byte("a line\n")))
		if err == nil || !strings.Contains(err.Error(), "what was read back has") {
			t.Errorf("it ends with %v", err)
		}
		st.spoil = nil
		wantNothing(t, st)
	}
}

// Who stops the process leaves no upload behind.
func TestTarget_AnEndedContextLeavesNothing(t *testing.T) {
	t.Parallel()
	st := newStorage(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := parse(t, "s3://letters/a/", st.S3).Write(ctx, "orders.dlq", "", func(w io.Writer) (int64, error) {
		_, err := w.Write(large())
		cancel()
		return 1, errors.Join(err, ctx.Err())
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	wantNothing(t, st)
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
