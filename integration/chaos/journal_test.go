package chaos

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
	j, err := openJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n, err := j.start(run{id: 7, topic: "orders", partition: 3, offset: 9, attempt: 2, due: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			if err := j.end(n, verdictFailed, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.late(time.Unix(0, 300), time.Unix(0, 500)); err != nil {
		t.Fatal(err)
	}
	if err := j.append([]byte("E 12")); err != nil {
		t.Fatal(err)
	}
	is, err := readJournal("a", name)
	runs := is.runs
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for least, want := range map[time.Duration]bool{100: true, 101: false} {
		if got := is.starved(400, 600, least); got != want {
			t.Errorf("starved for %v: %v, want %v", least, got, want)
		}
	}
	for i, r := range runs {
		got := *r
		if got.start == 0 || (got.end != 0) != (i == 0) {
			t.Errorf("run %d is from %d to %d", i, got.start, got.end)
		}
		got.start, got.end = 0, 0
		want := run{member: "a", number: int64(i + 1), id: 7, topic: "orders", partition: 3, offset: 9, attempt: 2, due: 1000, line: 1 + 2*i}
		if i == 0 {
			want.verdict, want.own = verdictFailed, true
		}
		if got != want {
			t.Errorf("run %d is %+v, want %+v", i, got, want)
		}
	}
	if is, err := readJournal("b", filepath.Join(t.TempDir(), "none")); len(is.runs) != 0 || err != nil && !os.IsNotExist(err) {
		t.Errorf("of a member that never began: %v, %v", is, err)
	}
}
