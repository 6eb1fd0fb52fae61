package redrive

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/offsetset"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

var update = flag.Bool("update", false, "write a golden file that is not there")

// A later version can resume, show or abort a run of an earlier one. Version 1 wrote the files in
// testdata, which are never edited. A version that writes records which this one would misread
// takes another number, and reads both.
func TestRecord_IsAsInItsGoldenFile(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 21, 3, 0, 0, 250e6, time.UTC)
	ended := began.Add(time.Minute)
	run := &record{
		V: 1, ID: "20261121-030000-7f3a01", TopicID: "-wECAwQFBgcICQoLDA0O_w", State: Aborted, Waiting: "nobody would run the records",
		Cause: "letter orders.dlq/0/7 failed again with orders.SKUError", By: "ada", Why: "fixed in v1.4.2", Owner: "ada on host, process 7",
		Token: "0011223344556677", Started: began, Heartbeat: began.Add(5 * time.Second), Ended: ended,
		Target: Target{Topic: "orders", Wait: true, Force: true, KeepTimestamp: true},
		Tiers:  map[string]string{"billing/0": "orders.retry.5s", "billing/1": "orders.retry.30s"},
		Edit: editRecord{Edit{
			Set: []kgo.RecordHeader{{Key: "region", Value: []byte("EU")}}, Unset: []string{"trace"}, Patch: []byte(`{"a":null}`), Value: []byte("new"),
		}},
		Pace:   Pace{Rate: 50, Burst: 5, Canary: 1, Tolerate: 2, Ramp: 30 * time.Second, Window: time.Minute, MaxLag: 1000},
		Groups: []string{"billing"}, Classes: []string{"orders.SKUError", "unclassified#00112233"}, Groupless: 1,
		Counts: Counts{
			Selected: 10, Sent: 8, Succeeded: 1, Failed: 2, FailedByClass: map[string]int64{"orders.SKUError": 2}, Discarded: 1, Retrying: 1,
			Pending: 2, Unknown: 1, Unfollowed: 1, Skipped: map[string]int64{SkippedExpired: 2},
		},
		Pieces: 1, Watch: bounds.Positions{"orders.dlq": {0: 100, 1: 0}, "orders.retry.5s": {0: 7}},
	}
	chosen := letters.Set{3: &offsetset.Set{}}
	for _, offset := range []int64{0, 1, 2, 7, 300, 1 << 40} {
		chosen.Add(letters.At(3, offset))
	}
	written := append([]*kgo.Record{run.ledgerRecord("orders.dlq.ledger")}, piecesOf(chosen, "orders.dlq.ledger", run.ID)...)
	var lines strings.Builder
	for _, r := range written {
		lines.WriteString(string(r.Key) + " " + string(r.Value) + "\n")
	}

	const file = "testdata/run-v1.txt"
	golden, err := os.ReadFile(file)
	if os.IsNotExist(err) && *update {
		golden, err = []byte(lines.String()), os.WriteFile(file, []byte(lines.String()), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if lines.String() != string(golden) {
		t.Errorf("written is\n%s, and %s has\n%s", lines.String(), file, golden)
	}

	kept := strings.SplitN(strings.TrimSpace(string(golden)), "\n", 2)
	_, value, _ := strings.Cut(kept[0], " ")
	if got, err := parseRecord([]byte(value)); err != nil || !reflect.DeepEqual(got, run) {
		t.Errorf("read is\n%+v, %v; want\n%+v", got, err, run)
	}
	key, value, _ := strings.Cut(kept[1], " ")
	name := strings.TrimPrefix(key, "run/")
	if !strings.HasPrefix(name, run.ID+selectionKey) {
		t.Errorf("%q is not taken for a piece of the selection", name)
	}
	got, err := joinPieces(run.ID, 1, map[string][]byte{name: []byte(value)})
	if err != nil {
		t.Error(err)
	}
	if offsets := slices.Collect(got[3].All()); !slices.Equal(offsets, slices.Collect(chosen[3].All())) {
		t.Errorf("the selection is %v", offsets)
	}
}

// Letters may have any number of classes, and the record is written at each heartbeat.
func TestRecord_KnowsItsClasses(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 1000, 40_000} {
		var classes []string
		for i := range n {
			classes = append(classes, fmt.Sprintf("unclassified#%016x", i))
		}
		r := &record{V: 1, ID: "r", State: Canary}
		r.setClasses(classes)
		value := r.ledgerRecord("orders.dlq.ledger").Value
		if len(value) > maxRecord {
			t.Errorf("%d classes take %d bytes", n, len(value))
		}
		again, err := parseRecord(value)
		if err != nil {
			t.Fatal(err)
		}
		has := again.hasClass()
		for _, c := range classes {
			if !has(c) {
				t.Fatalf("of %d classes it does not know %s", n, c)
			}
		}
		if has(fmt.Sprintf("unclassified#%016x", n)) || has("") || has("tax") {
			t.Errorf("of %d classes it knows one that is not the run's", n)
		}
	}
}

// A record of a newer version is left alone. A record of this version is read, whatever fields a
// newer siding added.
func TestRecord_OfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := parseRecord([]byte(`{"v":2,"id":"x","state":"canary"}`)); err == nil || !strings.Contains(err.Error(), "use a newer siding") {
		t.Errorf("a run of version 2: %v", err)
	}
	if err := parsePiece(letters.Set{}, []byte(`{"v":2,"partition":0,"offsets":""}`)); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a selection of version 2: %v", err)
	}
	if r, err := parseRecord([]byte(`{"v":1,"id":"x","state":"canary","later":[1]}`)); err != nil || r.ID != "x" {
		t.Errorf("a field that is not known: %v, %v", r, err)
	}
}

// Without one of its pieces a selection would be smaller, unnoticed.
func TestJoinPieces_NeedsAllPieces(t *testing.T) {
	t.Parallel()
	chosen := letters.Set{}
	chosen.Add(letters.At(0, 7))
	chosen.Add(letters.At(1, 8))
	pieces := map[string][]byte{}
	for _, r := range piecesOf(chosen, "orders.dlq.ledger", "r") {
		pieces[strings.TrimPrefix(string(r.Key), "run/")] = r.Value
	}
	if got, err := joinPieces("r", 2, pieces); err != nil || got.Len() != 2 {
		t.Errorf("of both pieces it has %d letters, %v", got.Len(), err)
	}
	for what, value := range map[string][]byte{"taken away": nil, "broken": []byte(`{"v":1,"off`), "cut": []byte(`{"v":1,"partition":1,"offsets":"/w=="}`)} {
		pieces["r/selection/1"] = value
		if _, err := joinPieces("r", 2, pieces); err == nil || !strings.Contains(err.Error(), "piece 1 of") {
			t.Errorf("%s: %v", what, err)
		}
	}
	delete(pieces, "r/selection/1")
	if _, err := joinPieces("r", 2, pieces); err == nil {
		t.Error("one is missing, and that is no error")
	}
}

// With many outcomes they go in two transactions, and the process may end between them.
func TestRecord_LastRecordsEndTheRunBeforeItsSelection(t *testing.T) {
	t.Parallel()
	rec := &record{V: runVersion, ID: "r", State: Done, Pieces: 3}
	var got []string
	for _, n := range rec.last("orders.dlq.ledger") {
		got = append(got, fmt.Sprintf("%s %t", n.Key, n.Value != nil))
	}
	if got, want := strings.Join(got, ", "), "run/r true, run/r/selection/0 false, run/r/selection/1 false, run/r/selection/2 false"; got != want {
		t.Errorf("the last records are %s, want %s", got, want)
	}
}

// A run's record is read by each process that looks at its topic. One that is broken, or was made
// up, gives an error; any other is written as it was read.
func FuzzRecord_RoundTrips(f *testing.F) {
	text, err := os.ReadFile("testdata/run-v1.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			f.Add([]byte(value))
		}
	}
	f.Add([]byte(`{"v":1,"id":"x","state":"sending","pieces":9007199254740993}`))
	f.Add([]byte(`{"v":1,"id":"x","state":"sending","timeout":9223372036854775807,"classHashes":"AA==","watch":{"a":{"-1":-1}}}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := parseRecord(value)
		if err != nil {
			_ = unreadable("orders.dlq.ledger", "x", err).Error()
			return
		}
		again, err := parseRecord(r.ledgerRecord("l").Value)
		if err != nil || !bytes.Equal(again.ledgerRecord("l").Value, r.ledgerRecord("l").Value) {
			t.Fatalf("%q is read, and its own form %q is not the same: %v", value, r.ledgerRecord("l").Value, err)
		}
		if r.silentAfter() < lively {
			t.Errorf("its heartbeats may come %v apart, want %v at least", r.silentAfter(), lively)
		}
		_, _, _, _ = r.hasClass()("x"), r.targets(), r.pastCanary(), r.topicID()
		_ = r.outcome("orders.dlq")
		if _, err := joinPieces(r.ID, r.Pieces, nil); err == nil && r.Pieces > 0 {
			t.Errorf("none of its %d pieces is there, and there is no error", r.Pieces)
		}
		if r.Pieces < 0 || r.Pieces > maxPieces {
			t.Errorf("it has %d pieces", r.Pieces)
		}
	})
}

// A piece of a selection that is read has the letters of its own form.
func FuzzRecord_Piece(f *testing.F) {
	chosen := letters.Set{3: &offsetset.Set{}}
	for _, offset := range []int64{0, 1, 2, 7, 300, 1 << 40} {
		chosen.Add(letters.At(3, offset))
	}
	for _, r := range piecesOf(chosen, "l", "x") {
		f.Add(r.Value)
	}
	f.Add([]byte(`{"v":1,"partition":-1,"offsets":"AAE="}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		s := letters.Set{}
		if parsePiece(s, value) != nil {
			return
		}
		again := letters.Set{}
		for _, r := range piecesOf(s, "l", "x") {
			if err := parsePiece(again, r.Value); err != nil {
				t.Fatalf("%q is read, and its own form %q is not: %v", value, r.Value, err)
			}
		}
		for partition, set := range s {
			if set.Len() > 0 && !slices.Equal(slices.Collect(set.All()), slices.Collect(again[partition].All())) {
				t.Errorf("%q has other letters in its own form", value)
			}
		}
	})
}
