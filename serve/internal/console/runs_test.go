package console

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
)

// The page asks people to do something about each run without a process, and counts those under
// way. So it has these runs, however many began later.
func TestRuns_HasAllThatAreNotOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		over int // of the older ones
		more bool
	}{
		"none is left out": {mostRuns - 2, false},
		"some are":         {mostRuns - 1, true},
	} {
		began := past().Add(-3 * time.Hour)
		all := newSpecimen(plain).runs()
		for i := range test.over + 2 {
			run := api.Run{Topic: "orders.dlq", ID: fmt.Sprintf("old-%d", i), State: string(redrive.Done), Started: began.Add(-time.Duration(i) * time.Minute)}
			switch i {
			case test.over:
				run.State = string(redrive.Sending)
			case test.over + 1:
				run.State, run.Silent = string(redrive.Sending), true
			default:
				run.Ended = &began
			}
			all = append(all, run)
		}
		page, err := execute("runs", newRunsModel(all, "", time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var text string
		for _, n := range parse(t, bytes.NewReader(page)) {
			switch {
			case n.Data == "body":
				text = textOf(n)
			case attr(n, "class") == "open":
				got = append(got, textOf(n))
			}
		}
		want := []string{"billing", "r0"}
		for i := range mostRuns - 2 {
			want = append(want, fmt.Sprintf("old-%d", i))
		}
		want = append(want, fmt.Sprintf("old-%d", test.over), fmt.Sprintf("old-%d", test.over+1))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has %d runs: %v", name, len(got), got)
		}
		has(t, name, text, "2 runs under way", "1 run without a process: resume or abort it", fmt.Sprintf("%d runs in all", test.over+4))
		if more := strings.Contains(text, "Older runs that have ended are in the ledgers."); more != test.more {
			t.Errorf("%s: it tells of older ones: %t", name, more)
		}
	}
}
