package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A record at an offset that was lost with the end of a log is another one: a commit from before
// says nothing about it, and one of its own time does.
func TestCommitted_JudgesWhatWasWrittenSinceALoss(t *testing.T) {
	t.Parallel()
	at := trace.TP{Topic: "orders", Partition: 0}
	for _, test := range []struct {
		name     string
		commits  []trace.Sample
		broken   int
		excluded int
	}{
		{"of the old end only", []trace.Sample{{Ended: 30, Committed: map[trace.TP]int64{at: 3}, Epochs: map[trace.TP]int32{at: 0}}}, 0, 1},
		{"of both", []trace.Sample{
			{Ended: 30, Committed: map[trace.TP]int64{at: 3}, Epochs: map[trace.TP]int32{at: 0}},
			{Ended: 50, Committed: map[trace.TP]int64{at: 3}, Epochs: map[trace.TP]int32{at: 4}},
		}, 0, 0},
		{"ahead of the new record", []trace.Sample{{Ended: 30, Committed: map[trace.TP]int64{at: 3}, Epochs: map[trace.TP]int32{at: 4}}}, 1, 0},
	} {
		all := &feed{TP: at, source: true, at: map[int64]*delivered{}}
		for offset := range int64(3) {
			of := &record{id: offset, origin: &kgo.Record{Topic: "orders", Offset: offset}}
			x := &trace.Run{Member: "a", ID: offset, Start: 10, End: 11, Verdict: trace.VerdictPassed}
			if offset == 2 { // since the loss at 20
				of.origin.LeaderEpoch, x.Start, x.End = 4, 40, 41
			}
			all.at[offset] = &delivered{offset: offset, of: of, runs: []*trace.Run{x}}
		}
		ev := &evidence{
			services: []*served{{feeds: map[trace.TP]*feed{at: all}}},
			samples:  test.commits,
			older:    []trace.OlderLog{{TP: at, From: 2}},
		}
		f := find(committedRule, ev)
		if n := f.excluded["passed by a commit of the lost end of a log only"]; len(f.broken) != test.broken || n != test.excluded {
			t.Errorf("%s: found %v and excluded %d, want %d and %d", test.name, f.broken, n, test.broken, test.excluded)
		}
	}
}

// A copy that costs no attempt has the number of the failed one in its history. Each of them is the
// end of the one before, and of a failure of its own.
func TestCommitted_KnowsCopiesThatCostNoAttempt(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	of := &record{id: 7, origin: &kgo.Record{Topic: "orders"}}
	var all []*delivered
	for n, failed := range []int{1, 2, 2} {
		of.runs = append(of.runs, &trace.Run{Attempt: failed, Start: at(100 + n).UnixNano(), End: at(100 + n).UnixNano(), Verdict: trace.VerdictFailed})
		c := &copied{of: of, rec: &kgo.Record{Topic: "orders.retry.2s", Offset: int64(n)}, meta: headers.Meta{
			Attempts: 1, FirstFailedAt: at(100), FailedAt: at(100 + n), History: []headers.Attempt{{Number: failed}},
			Original: headers.Position{Topic: "orders"},
		}}
		of.copies = append(of.copies, c)
		all = append(all, &delivered{of: of, copy: c})
		if wrong := untrue(of, c, ""); len(wrong) > 0 {
			t.Errorf("copy %d is wrong about %v", n, wrong)
		}
	}
	for n, want := range []bool{true, true, false} {
		if got := finished(all[n], &trace.Sample{}); got != want {
			t.Errorf("copy %d is finished: %v, want %v", n, got, want)
		}
	}
	if finished(all[0], &trace.Sample{Ends: map[trace.TP]int64{{Topic: "orders.retry.2s", Partition: 0}: 1}}) {
		t.Error("copy 0 is finished before the next one is written")
	}
	for runs, want := range map[int]int{3: 0, 2: 1} {
		r := *of
		r.runs = of.runs[:runs]
		ev := &evidence{services: []*served{{records: map[int64]*record{7: &r}}}}
		wants(t, fmt.Sprint("three copies of ", runs, " failures"), find(repeated, ev), want)
	}
	of.copies[2].meta.Reason = "exhausted"
	if len(untrue(of, of.copies[2], "")) == 0 {
		t.Error("a letter that cost no attempt is true")
	}
}

// That a log lost its end is no excuse for a commit of an old floor: the owner has to log that it
// read the log again.
func TestRewound_NeedsAnOwnerThatReadsTheLogAgain(t *testing.T) {
	t.Parallel()
	at := trace.TP{Topic: "orders", Partition: 0}
	for _, test := range []struct {
		name  string
		older []trace.OlderLog
		lanes []trace.LaneChange
		want  int
	}{
		{"read again", []trace.OlderLog{{TP: at, From: 4}}, []trace.LaneChange{{At: int64(10 * time.Second), What: trace.LaneReread, Lane: at}}, 0},
		{"not read again", []trace.OlderLog{{TP: at, From: 4}}, []trace.LaneChange{{At: int64(10 * time.Second), What: trace.LaneAssigned, Lane: at}}, 1},
		{"of a log that lost nothing", nil, []trace.LaneChange{{At: int64(10 * time.Second), What: trace.LaneReread, Lane: at}}, 1},
	} {
		ev := &evidence{older: test.older, journals: map[string]trace.Logged{"a": {Lanes: test.lanes}}, samples: []trace.Sample{
			{Ended: int64(8 * time.Second), Committed: map[trace.TP]int64{at: 7}},
			{Ended: int64(12 * time.Second), Committed: map[trace.TP]int64{at: 0}},
		}}
		wants(t, test.name, find(rewound, ev), test.want)
	}
}
