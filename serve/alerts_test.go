package serve

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
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
		{"redrive-fails", "of the last redrive, 1,000 letters succeeded and 2,000 failed again", figures{lastRun: redrive.Counts{Succeeded: 1000, Failed: 2000}}},
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
