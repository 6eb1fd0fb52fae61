package operate

import (
	"reflect"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
)

// Who began a run, who resumed it with which limits, and who aborted it: a run that another one
// followed after an abort is in the audit, too.
func TestActsOf_HasBeginningResumptionsAndAbort(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	run := redrive.Outcome{
		ID: "r1", State: redrive.Aborted, By: "ada", Why: "OPS-1", Owner: "ben on pod-2, process 1", Cause: "aborted by ben on pod-2, process 1: wrong letters",
		Started: at, Ended: at.Add(time.Hour), Counts: redrive.Counts{Selected: 7},
		Resumed: []redrive.Resumption{{At: at.Add(time.Minute), Owner: "eve on pod-1, process 7", Changed: []redrive.PaceChange{{Field: "rate", From: "50", To: "10"}}}},
	}
	want := []api.Act{
		{At: at, By: "ada", What: "began-run", Why: "OPS-1", Letters: 7, Run: "r1"},
		{At: at.Add(time.Minute), By: "eve", Process: "pod-1, process 7", What: "resumed-run", Run: "r1", Changed: []api.PaceChange{{Field: "rate", From: "50", To: "10"}}},
		{At: at.Add(time.Hour), By: "ben", Process: "pod-2, process 1", What: "aborted-run", Why: "wrong letters", Run: "r1"},
	}
	if got := actsOf(&run); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if run.Cause, run.Resumed = "letter a failed again", nil; len(actsOf(&run)) != 1 {
		t.Errorf("it aborted itself: %+v", actsOf(&run))
	}
}
