package output

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fixed is a screen of buffers in which it is always noon.
func fixed(f Format) (s *Screen, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	s = NewScreen(stdout, stderr, func(string) string { return "" })
	s.Format = f
	s.Look = Look{Now: func() time.Time { return noon }, Zone: time.UTC}
	return s, stdout, stderr
}

// add writes a row of a list.
func add(t *testing.T, l *List, fields ...Field) {
	t.Helper()
	if err := l.Row(fields...); err != nil {
		t.Fatal(err)
	}
}

// end ends a list.
func end(t *testing.T, l *List) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// sampled are cells as a row.
func sampled(cells ...any) []Field {
	return []Field{
		NewField("topic", "TOPIC", cells[0]),
		NewField("open", "OPEN", cells[1]).Right(),
		NewField("oldest", "OLDEST", cells[2]),
		NewField("failedAt", "LAST FAILURE", cells[3]),
		NewField("retentionMs", "KEPT", cells[4]),
		NewField("groups", "GROUPS", cells[5]),
		NewField("paused", "PAUSED", cells[6]),
		NewField("facts", "", cells[7]),
		NewField("message", "MESSAGE", cells[8]).MayCut(),
	}
}

var rows = [][]any{
	{"orders.dlq", int64(40000), Ago(noon.Add(-90 * time.Minute)), noon.Add(-time.Second).In(time.FixedZone("east", 3600)), 14 * 24 * time.Hour, []string{"billing", "audit"}, true, map[string]int{"a": 1}, "no route to <host> & back"},
	{"p.dlq", 3, Ago(noon.Add(50 * time.Hour)), time.Time{}, 5 * time.Minute, []string(nil), false, nil, "sku 名前 \x1b[31mred\nnext \u009b2J \u202e \xff \U000e0001"},
	{"none", nil, Ago{}, nil, nil, []string{}, nil, nil, Pair{"shown", json.RawMessage(`{"n": 9007199254740993}`)}},
}
