package dlq

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

var update = flag.Bool("update", false, "write golden files that are not there yet")

// golden compares what is written with a file of testdata. A file that is there is never written again: the format is a promise.
func golden(t *testing.T, file, got string) {
	t.Helper()
	file = "testdata/" + file
	if _, err := os.Stat(file); *update && errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is written otherwise (-want +got):\n%s", file, d)
	}
}

// collect returns what is yielded, without an error.
func collect[T any](t *testing.T, seq iter.Seq2[T, error]) (all []T) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// letters are the letters of a topic, by partition as they stand there.
func (k *kafka) letters(t *testing.T, topic string) []*Letter {
	t.Helper()
	return collect(t, Read(t.Context(), topic, Filter{}, Cursor{}, k.opts()...))
}

func (k *kafka) freeze(t *testing.T, topic string) Cursor {
	t.Helper()
	c, err := Freeze(t.Context(), topic, k.opts()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// summarize counts all letters of a ledger's topic.
func summarize(t *testing.T, l *Ledger) *Summary {
	t.Helper()
	s, err := l.Summarize(t.Context(), Filter{}, Cursor{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantError checks that an error says something.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

// open returns the open letters as "partition:offset".
func (k *kafka) open(t *testing.T, l *Ledger, f Filter, from Cursor) (got []string) {
	t.Helper()
	for _, letter := range collect(t, l.Letters(t.Context(), f, from, OpenOnly)) {
		got = append(got, fmt.Sprintf("%d:%d", letter.Record.Partition, letter.Record.Offset))
	}
	slices.SortStableFunc(got, func(a, b string) int { return int(a[0]) - int(b[0]) })
	return got
}

// readLedger is the ledger of a topic, once it was read.
func (k *kafka) readLedger(t *testing.T, topic string) *Ledger {
	t.Helper()
	l := k.ledger(topic)
	read(t, l)
	return l
}

func read(t *testing.T, l *Ledger) {
	t.Helper()
	if err := l.Read(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, got []string, errs []error, want ...string) {
	t.Helper()
	if len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func header(key, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: key, Value: []byte(value)}
}

// only returns the one letter of a topic.
func (k *kafka) only(t *testing.T, topic string) *Letter {
	t.Helper()
	letters := k.letters(t, topic)
	if len(letters) != 1 {
		t.Fatalf("%d letters, want 1", len(letters))
	}
	return letters[0]
}
