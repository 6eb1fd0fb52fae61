package redact

import "testing"

// With a path that skips levels twice, a record of deeply nested objects took memory with the
// square of its depth.
func TestPlace_HasEachPathOnce(t *testing.T) {
	t.Parallel()
	at := rules(t, "..a..b, ..a[*]..c", "", "").paths
	for range 1000 {
		at, _ = at.member("a")
		at, _ = at.element(0)
	}
	if len(at) > 2+3 { // the steps of both
		t.Errorf("%d paths lead on, want each rest of the two once", len(at))
	}
}
