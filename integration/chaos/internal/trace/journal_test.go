package trace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A killed process leaves a journal whose last line may be cut, and a run without an end.
func TestJournal_IsReadAfterAKill(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.journal")
	j, err := OpenJournal(name)
	must(t, err)
	for range 2 {
		n, err := j.Start(Run{ID: 7, Topic: "orders", Partition: 3, Offset: 9, Attempt: 2, Due: 1000})
		must(t, err)
		if n == 1 {
			must(t, j.End(n, VerdictFailed, true))
		}
	}
	must(t, j.Late(time.Unix(0, 300), time.Unix(0, 500)))
	must(t, j.append([]byte("E 12")))
	is, err := ReadJournal("a", name)
	runs := is.Runs
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for least, want := range map[time.Duration]bool{100: true, 101: false} {
		if got := is.Starved(400, 600, least); got != want {
			t.Errorf("starved for %v: %v, want %v", least, got, want)
		}
	}
	for i, r := range runs {
		got := *r
		if got.Start == 0 || (got.End != 0) != (i == 0) {
			t.Errorf("run %d is from %d to %d", i, got.Start, got.End)
		}
		got.Start, got.End = 0, 0
		want := Run{Member: "a", number: int64(i + 1), ID: 7, Topic: "orders", Partition: 3, Offset: 9, Attempt: 2, Due: 1000, line: 1 + 2*i}
		if i == 0 {
			want.Verdict, want.Own = VerdictFailed, true
		}
		if got != want {
			t.Errorf("run %d is %+v, want %+v", i, got, want)
		}
	}
	if is, err := ReadJournal("b", filepath.Join(t.TempDir(), "none")); len(is.Runs) != 0 || err != nil && !os.IsNotExist(err) {
		t.Errorf("of a member that never began: %v, %v", is, err)
	}
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
