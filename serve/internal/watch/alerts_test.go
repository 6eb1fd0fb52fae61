package watch

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
		f          Figures
	}{
		{"open", "1,234 letters open", Figures{Open: 1234}},
		{"new", "5,000 letters came within 5m", Figures{RecentBy: map[string]int64{"a": 2000, "b": 3000}}},
		{"retention", "retention takes 1 letter within 48h", Figures{ExpiringSoon: 1}},
		{"redrive-fails", "of the last redrive, 1,000 letters succeeded and 2,000 failed again", Figures{LastRun: redrive.Outcome{Counts: redrive.Counts{Succeeded: 1000, Failed: 2000}}}},
		{"redrive-fails", "of the last redrive, 1 letter succeeded and 2 failed again", Figures{LastRun: redrive.Outcome{State: redrive.Done, Counts: redrive.Counts{Succeeded: 1, Failed: 1, Pending: 5, Retrying: 1}}}},
		{"redrive-fails", "no alert", Figures{LastRun: redrive.Outcome{State: redrive.Sending, Counts: redrive.Counts{Succeeded: 1, Pending: 5, Retrying: 1}}}},
		{"redrive-fails", "run 1 of ada was aborted: new traffic fails", Figures{Open: 1, LastRun: redrive.Outcome{ID: "1", By: "ada", Cause: "new traffic fails", State: redrive.Aborted}}},
		{"redrive-fails", "run 1 of ada was aborted by ben on b: wrong", Figures{Pending: 1, LastRun: redrive.Outcome{ID: "1", By: "ada", Cause: "aborted by ben on b: wrong", State: redrive.Aborted, Counts: redrive.Counts{Succeeded: 99}}}},
		{"redrive-fails", "no alert", Figures{LastRun: redrive.Outcome{ID: "1", By: "ada", Cause: "nothing is left", State: redrive.Aborted}}},
		{"redrive-fails", "no alert", Figures{Open: 1, LastRun: redrive.Outcome{ID: "1", Cause: "failed", State: redrive.Aborted}, Circuits: []Circuit{{Rule: "a", State: rule.State{Run: "1", Opened: time.Now()}}}}},
		{"new-class", "the first letters of a, b", Figures{NewClasses: []string{"b", "a"}}},
		{"new-class", "the first letters without a class", Figures{NewClasses: []string{""}}},
		{"new-class", "the first letters of a, and the first without a class", Figures{NewClasses: []string{"a", ""}}},
	} {
		got := "no alert"
		for _, kind := range AlertKinds {
			if kind.Name != test.kind {
				continue
			}
			if a := kind.Due(&test.f, Thresholds{WarnOpen: 10, PageOpen: 100, New: 50, Oldest: 4 * time.Hour, Retention: 48 * time.Hour}, time.Now()); a != nil {
				got = a.Text
			}
		}
		if got != test.want {
			t.Errorf("%s says %q, want %q", test.kind, got, test.want)
		}
	}
}
