package watch

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

// An abort is looked up while the ledger is read up to just before it. The run stays aborted.
func TestRuns_KeepTheNewerState(t *testing.T) {
	at := time.Unix(100, 0)
	running := redrive.Outcome{ID: "a", State: redrive.Sending, Heartbeat: at}
	later := redrive.Outcome{ID: "a", State: redrive.Sending, Heartbeat: at.Add(time.Second)}
	aborted := redrive.Outcome{ID: "a", State: redrive.Aborted, Heartbeat: at.Add(2 * time.Second)}
	other := redrive.Outcome{ID: "b", State: redrive.Done, Heartbeat: at}
	for _, is := range []struct {
		name             string
		looked, read     redrive.Outcome
		state            redrive.State
		heartbeatSeconds int64
	}{
		{"the index is older", aborted, later, redrive.Aborted, 102},
		{"the index is newer", running, later, redrive.Sending, 101},
		{"the index has the end", later, aborted, redrive.Aborted, 102},
	} {
		t.Run(is.name, func(t *testing.T) {
			var r Runs
			r.Observe(is.looked)
			r.keep([]redrive.Outcome{is.read, other}, nil)
			all := r.Known()
			if len(all) != 2 || all[0].ID != "a" || all[1].ID != "b" {
				t.Fatalf("the runs are %v", all)
			}
			if all[0].State != is.state || all[0].Heartbeat.Unix() != is.heartbeatSeconds {
				t.Errorf("the run is %s of %d, want %s of %d", all[0].State, all[0].Heartbeat.Unix(), is.state, is.heartbeatSeconds)
			}
		})
	}
}
