package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// What is not known is not shown as 0.
func TestSentence_SaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { return ptr(now.Add(-d)) }
	for want, topic := range map[string]operate.Topic{
		"not counted yet": {},
		"still being counted: 2,000 offsets to read · 12 open · quiet for 3 h · oldest 4 h ago": {Topic: api.Topic{Unread: 2000, Open: 12, Newest: at(3 * time.Hour), Oldest: at(4 * time.Hour)}},
		"all settled":                             {Topic: api.Topic{Known: &now}},
		"0 open · 3 redriven, outcome pending":    {Topic: api.Topic{Known: &now, Pending: 3}},
		"1 open · quiet for 3 h · oldest 3 h ago": {Topic: api.Topic{Known: &now, Open: 1, Newest: at(3 * time.Hour), Oldest: at(3 * time.Hour)}},
		"1 open · 1 in the last 5 min · quiet for 3 min · oldest 3 min ago":          {Topic: api.Topic{Known: &now, Open: 1, Recent: 1, Newest: at(3 * time.Minute), Oldest: at(3 * time.Minute)}},
		"1 open · the newest has a time that is yet to come, in 4 h · oldest in 4 h": {Topic: api.Topic{Known: &now, Open: 1, Newest: at(-4 * time.Hour), Oldest: at(-4 * time.Hour)}},
		"held since 12 min ago by billing (3 of 3 partitions), 12,400 records wait, most failures are http.503 · strained since 1 h ago by mail (1 of 12 partitions), 1 record waits · 1 open · oldest 3 h ago": {
			Topic: api.Topic{Known: &now, Open: 1, Newest: at(3 * time.Hour), Oldest: at(3 * time.Hour), Guards: []api.Guard{
				{Group: "billing", State: "held", Since: *at(12 * time.Minute), Class: "http.503", Partitions: 3, Of: 3, Waiting: ptr(int64(12_400))},
				{Group: "mail", State: "strained", Since: *at(time.Hour), Partitions: 1, Of: 12, Waiting: ptr(int64(1))},
			}},
		},
		"held by billing (1 of 1 partition) · 0 open": { // its clock is fast, and no end is known
			Topic: api.Topic{Known: &now, Guards: []api.Guard{{Group: "billing", State: "held", Since: *at(-time.Hour), Partitions: 1, Of: 1}}},
		},
		"strained since 1 h ago by mail (0 of 0 partitions) · not counted yet": {Topic: api.Topic{Guards: []api.Guard{{Group: "mail", State: "strained", Since: *at(time.Hour)}}}},
		"held since 1 h ago by g0 (0 of 0 partitions) · held since 1 h ago by g1 (0 of 0 partitions) · held since 1 h ago by g2 (0 of 0 partitions) · held or strained by 997 more groups · 0 open": {
			Topic: api.Topic{Known: &now, Guards: manyGuards(1000, *at(time.Hour))},
		},
		"1 open · growing, 1 in the last 5 min · oldest 10 s ago · retention takes the first any moment": {
			Topic: api.Topic{Known: &now, Open: 1, Recent: 1, Newest: at(10 * time.Second), Oldest: at(10 * time.Second)}, Retention: time.Second,
		},
	} {
		var says []string
		for _, p := range sentence(&topic, now) {
			says = append(says, strings.TrimSpace(strings.TrimSpace(p.Text+" "+p.At.Text)+" "+p.After))
		}
		if got := strings.Join(says, " · "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func manyGuards(n int, since time.Time) (all []api.Guard) {
	for i := range n {
		all = append(all, api.Guard{Group: fmt.Sprint("g", i), State: "held", Since: since})
	}
	return all
}
