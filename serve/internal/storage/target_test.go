package storage

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/minio/minio-go/v7"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve/archive"
)

// What is written is read back, from an object and from a folder.
func TestTarget_WritesWhatIsReadBack(t *testing.T) {
	t.Parallel()
	st := start(t)
	for _, where := range []string{"s3://letters/aN.jsonl", "s3://letters/a/bN.jsonl.gz", "s3://letters", "s3://letters/", "s3://letters/some/folder/"} {
		for i, text := range [][]byte{nil, []byte("a line\n"), large} {
			target := strings.Replace(where, "N", strconv.Itoa(i), 1)
			a, err := parse(t, target, st.s3()).Write(t.Context(), "orders.dlq", "", lines(text))
			if err != nil {
				t.Fatalf("%s: %v", target, err)
			}
			if got := readAll(t, a.Location, st.s3()); !bytes.Equal(got, text) {
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
		st := start(t)
		if _, err := parse(t, "s3://letters/a.jsonl", st.s3()).Write(t.Context(), "orders.dlq", "", lines(noise(bytes))); err != nil {
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
	st := start(t)
	const where = "s3://letters/a/"
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	var want, names []string
	for range 5 {
		a, err := parse(t, where, st.s3()).Write(t.Context(), "orders.dlq", archive.NewID(at), lines([]byte(at.String()+"\n")))
		if err != nil {
			t.Fatal(err)
		}
		want, names = append(want, at.String()+"\n"), append(names, a.Location)
		at = at.Add(7 * time.Hour)
	}
	if !slices.IsSorted(names) || !regexp.MustCompile(`a/orders\.dlq/20261123T090000\.000Z-[0-9a-f]{8}\.jsonl\.gz$`).MatchString(names[0]) {
		t.Errorf("the names are %q", names)
	}
	// A folder is read in that order, also that of one topic.
	for _, folder := range []string{where, where + "orders.dlq/"} {
		if got := string(readAll(t, folder, st.s3())); got != strings.Join(want, "") {
			t.Errorf("%s has %q, want %q", folder, got, want)
		}
	}
	if _, err := archive.Open(t.Context(), where+"nothing/", st.s3()); err == nil {
		t.Error("a folder without archives is opened")
	}
}

func TestTarget_OverwritesNothing(t *testing.T) {
	t.Parallel()
	st := start(t)
	const where = "s3://letters/a.jsonl"
	if _, err := parse(t, where, st.s3()).Write(t.Context(), "orders.dlq", "", lines([]byte("precious"))); err != nil {
		t.Fatal(err)
	}
	_, err := parse(t, where, st.s3()).Write(t.Context(), "orders.dlq", "", lines([]byte("other")))
	if !errors.Is(err, archive.ErrExists) || !strings.Contains(err.Error(), where+" already exists and is never overwritten: choose another name") {
		t.Errorf("it ends with %v", err)
	}
	if got := string(readAll(t, where, st.s3())); got != "precious" {
		t.Errorf("it has %q", got)
	}
}

// Each request to the storage may be refused, that of what is read back too: whichever it is, Write
// fails, and nothing is left.
func TestTarget_LeavesNothingWhicheverRequestFails(t *testing.T) {
	t.Parallel()
	for _, c := range cases.Some(map[string]struct {
		where    string
		text     []byte
		requests int
	}{
		"an object": {"s3://letters/a.jsonl", []byte("small\n"), 3},
		"a folder":  {"s3://letters/folder/", []byte("small\n"), 2},
		"two parts": {"s3://letters/a.jsonl", make([]byte, 8<<20+1), 6},
	}, "an object", "a folder") {
		st := start(t)
		target := parse(t, c.where, st.s3())
		n := 1
		for ; ; n++ {
			st.refuse(func(i int) bool { return i == n })
			_, err := target.Write(t.Context(), "orders.dlq", "", lines(c.text))
			if err == nil {
				break // it takes fewer requests
			}
			if !strings.Contains(err.Error(), "s3://letters/") || !strings.Contains(err.Error(), "403") {
				t.Errorf("request %d: %v", n, err)
			}
			st.wantNothing(t)
		}
		if n <= c.requests {
			t.Errorf("%s: %d requests failed, want at least %d", c.where, n-1, c.requests)
		}
	}
}

// A process that was killed within an archive left an upload that was never completed: storage
// keeps such parts, and counts them. The next archive of the topic in the folder aborts those of
// archives when they are a day old, and no others.
func TestTarget_SweepsWhatTheKilledLeft(t *testing.T) {
	t.Parallel()
	clock := gofakes3.FixedTimeSource(time.Now().Add(-25 * time.Hour))
	st := start(t, gofakes3.WithTimeSource(clock), gofakes3.WithTimeSkewLimit(0))
	begin := func(keys ...string) {
		for _, key := range keys {
			if _, err := st.inside.NewMultipartUpload(t.Context(), name, key, minio.PutObjectOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin("a/orders.dlq/old.jsonl.gz", "a/orders.dlq/old.zip", "a/orders.dlq.2/old.jsonl.gz")
	clock.Advance(2 * time.Hour)
	begin("a/orders.dlq/new.jsonl.gz")
	clock.Advance(23 * time.Hour)
	if _, err := parse(t, "s3://letters/a/", st.s3()).Write(t.Context(), "orders.dlq", "", lines([]byte("a line\n"))); err != nil {
		t.Fatal(err)
	}
	if left := st.uploads(t); !slices.Equal(left, []string{"a/orders.dlq.2/old.jsonl.gz", "a/orders.dlq/new.jsonl.gz", "a/orders.dlq/old.zip"}) {
		t.Errorf("the uploads of others, and of just now, were to stay, and no more: %q", left)
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
		st := start(t)
		st.spoil = spoil
		_, err := parse(t, "s3://letters/a/", st.s3()).Write(t.Context(), "orders.dlq", "", lines([]byte("a line\n")))
		if err == nil || !strings.Contains(err.Error(), "what was read back has") {
			t.Errorf("it ends with %v", err)
		}
		st.wantNothing(t)
	}
}

func TestOpen_NamesWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	st := start(t)
	for text, want := range map[string]string{
		"s3://letters/absent.jsonl": "archive: open s3://letters/absent.jsonl: ",
		"s3://letters/absent/":      "there is no archive",
	} {
		if _, err := archive.Open(t.Context(), text, st.s3()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
