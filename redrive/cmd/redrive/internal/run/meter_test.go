package run

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// Whoever watches a topic sees of each run what its own process shows, and that a run has none.
func TestMeter_SaysHowFarARunIs(t *testing.T) {
	t.Parallel()
	o := redrive.Outcome{Topic: "orders.dlq", ID: "1", State: redrive.Sending, Pace: redrive.Pace{Rate: 10}, Heartbeat: clitest.Noon, RampBegan: clitest.Noon, Counts: redrive.Counts{Selected: 200, Sent: 10, Succeeded: 10}}
	later := o
	later.Heartbeat, later.Counts.Sent, later.Counts.Failed = clitest.Noon.Add(5*time.Second), 60, 1
	over := later
	over.State, over.Counts.Succeeded = redrive.Done, 59
	other := o
	other.ID = "2"
	var m Meter
	for _, c := range []struct {
		o     redrive.Outcome
		after time.Duration
		want  string
		bad   bool
	}{
		{o, 0, "sending (19s left): 0 failed again, 10 sent at 0/s, 10 succeeded, 0 pending", false},
		{later, 5 * time.Second, "sending (14s left): 1 failed again, 60 sent at 10/s, 10 succeeded, 0 pending", true},
		{later, 65 * time.Second, "unfinished, without a heartbeat for 1m: 1 failed again, 60 sent at 10/s, 10 succeeded, 0 pending", true},
		{over, 66 * time.Second, "done: 1 failed again, 60 sent, 59 succeeded, 0 pending", true},
		{other, 0, "sending (19s left): 0 failed again, 10 sent at 0/s, 10 succeeded, 0 pending", false},
	} {
		if got, bad := m.Line(c.o, clitest.Noon.Add(c.after)); got != c.want || bad != c.bad {
			t.Errorf("%q, %v; want %q, %v", got, bad, c.want, c.bad)
		}
	}
}
