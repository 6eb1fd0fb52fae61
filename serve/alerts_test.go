package serve

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// What alerts say is read by people, in messages and in the console: numbers have separators, and
// letters without a class are no gap in a list of names.
func TestAlerts_AreReadAsWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind, want string
		f          figures
	}{
		{"open", "1,234 letters open", figures{open: 1234}},
		{"new", "5,000 letters came within 5m", figures{recentBy: map[string]int64{"a": 2000, "b": 3000}}},
		{"retention", "retention takes 1 letter within 48h", figures{expiringSoon: 1}},
		{"redrive-fails", "of the last redrive, 1,000 letters succeeded and 2,000 failed again", figures{lastRun: redrive.Outcome{Counts: redrive.Counts{Succeeded: 1000, Failed: 2000}}}},
		{"redrive-fails", "of the last redrive, 1 letter succeeded and 2 failed again", figures{lastRun: redrive.Outcome{State: redrive.Done, Counts: redrive.Counts{Succeeded: 1, Failed: 1, Pending: 5, Retrying: 1}}}},
		{"redrive-fails", "no alert", figures{lastRun: redrive.Outcome{State: redrive.Sending, Counts: redrive.Counts{Succeeded: 1, Pending: 5, Retrying: 1}}}},
		{"redrive-fails", "run 1 of ada was aborted: new traffic fails", figures{open: 1, lastRun: redrive.Outcome{ID: "1", By: "ada", Cause: "new traffic fails", State: redrive.Aborted}}},
		{"redrive-fails", "run 1 of ada was aborted by ben on b: wrong", figures{pending: 1, lastRun: redrive.Outcome{ID: "1", By: "ada", Cause: "aborted by ben on b: wrong", State: redrive.Aborted, Counts: redrive.Counts{Succeeded: 99}}}},
		{"redrive-fails", "no alert", figures{lastRun: redrive.Outcome{ID: "1", By: "ada", Cause: "nothing is left", State: redrive.Aborted}}},
		{"redrive-fails", "no alert", figures{open: 1, lastRun: redrive.Outcome{ID: "1", Cause: "failed", State: redrive.Aborted}, circuits: []circuit{{rule: "a", state: rule.State{Run: "1", Opened: time.Now()}}}}},
		{"new-class", "the first letters of a, b", figures{newClasses: []string{"b", "a"}}},
		{"new-class", "the first letters without a class", figures{newClasses: []string{""}}},
		{"new-class", "the first letters of a, and the first without a class", figures{newClasses: []string{"a", ""}}},
	} {
		got := "no alert"
		for _, kind := range alertKinds {
			if kind.name != test.kind {
				continue
			}
			if a := kind.due(&test.f, (&Topic{}).thresholds(), time.Now()); a != nil {
				got = a.Text
			}
		}
		if got != test.want {
			t.Errorf("%s says %q, want %q", test.kind, got, test.want)
		}
	}
}
