package check

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// The first record of a physical partition that kills may do so four times, a further one twice;
// one that was written after the last death by those before it, or is no suspect then, is the first
// one again.
func TestCrashLoop_CountsDeathsByWindow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		deaths  []int
		written []time.Duration // the n-th process dies n minutes after the start
		to      int64           // of the suspects
		want    int
	}{
		{"four", []int{4}, []time.Duration{0}, 2, 0},
		{"five", []int{5}, []time.Duration{0}, 2, 1},
		{"two records", []int{4, 2}, []time.Duration{0, 0}, 2, 0},
		{"two records, one death too many", []int{4, 3}, []time.Duration{0, 0}, 2, 1},
		{"written as the first one still kills", []int{4, 3}, []time.Duration{0, 3 * time.Minute}, 2, 1},
		{"written after the first one's end", []int{4, 4}, []time.Duration{0, 5 * time.Minute}, 2, 0},
		{"written after the first one's end, one death too many", []int{4, 5}, []time.Duration{0, 5 * time.Minute}, 2, 1},
		{"behind the first one's suspects", []int{4, 4}, []time.Duration{0, 0}, 1, 0},
		{"behind the first one's suspects, one death too many", []int{4, 5}, []time.Duration{0, 0}, 1, 1},
	} {
		ev := &evidence{members: map[string]*trace.Member{}, journals: map[string]trace.Logged{}}
		retry := &feed{TP: trace.TP{Topic: "orders.retry.5s", Partition: 0}, at: map[int64]*delivered{}}
		died := 0
		for i, deaths := range test.deaths {
			d := &delivered{of: &record{script: trace.Script{Act: trace.ActKill}}, copy: &copied{rec: &kgo.Record{Timestamp: time.Unix(0, 0).Add(test.written[i])}}}
			for range deaths {
				died++
				name := strconv.Itoa(died)
				end := time.Duration(died) * time.Minute
				ev.members[name] = &trace.Member{Ended: int64(end)}
				ev.journals[name] = trace.Logged{Suspects: []trace.Suspects{{Feed: retry.TP, To: test.to}}}
				d.runs = append(d.runs, &trace.Run{Member: name, Topic: retry.Topic, Offset: int64(i), Attempt: 1, Start: int64(end - time.Second)})
			}
			retry.at[int64(i)] = d
		}
		wants(t, test.name, find(func(ev *evidence, f *findings) { deathsIn(ev, retry, f) }, ev), test.want)
	}
}

// A record may be named alone in a commit, and its process be killed or suspended before it begins.
func TestCrashLoop_ExcusesARecordThatNeverBegan(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 0}
	at := func(s int) int64 { return int64(time.Duration(s) * time.Second) }
	for name, test := range map[string]struct {
		last *trace.Member
		lost int64
		want int
	}{
		"killed by a fault":   {&trace.Member{Ended: at(100), Killed: true}, 0, 0},
		"suspended":           {&trace.Member{Suspended: [][2]int64{{at(85), at(99)}}}, at(100), 0},
		"killed by a record":  {&trace.Member{Ended: at(100)}, 0, 1},
		"suspended long ago":  {&trace.Member{Suspended: [][2]int64{{at(50), at(60)}}}, at(100), 1},
		"lost to a rebalance": {&trace.Member{}, at(100), 1},
	} {
		test.last.Asked = test.last.Killed
		writer, before := trace.Logged{Lanes: []trace.LaneChange{{At: at(101), What: trace.LaneAssigned, Lane: lane}}}, trace.Logged{Lanes: []trace.LaneChange{{At: at(1), What: trace.LaneAssigned, Lane: lane}, {At: at(20), What: trace.LaneEnded, Lane: lane}}}
		last := trace.Logged{Lanes: []trace.LaneChange{{At: at(70), What: trace.LaneAssigned, Lane: lane}}}
		if test.lost != 0 {
			last.Lanes = append(last.Lanes, trace.LaneChange{At: test.lost, What: trace.LaneEnded, Lane: lane})
		}
		test.last.Job.Name, test.last.Job.Service.Policy.Session = "last", 6*time.Second
		ev := &evidence{
			members:  map[string]*trace.Member{"before": {Ended: at(20), Killed: true}, "last": test.last, "writer": {}},
			journals: map[string]trace.Logged{"before": before, "last": last, "writer": writer},
		}
		c := &copied{rec: &kgo.Record{}, meta: headers.Meta{Reason: headers.Reason(trace.ReasonCrashLoop), FailedAt: time.Unix(102, 0), Message: said(1, 102*time.Second)}}
		ev.services = []*served{{records: map[int64]*record{1: {origin: &kgo.Record{Topic: lane.Topic}, letters: []*copied{c}}}}}
		wants(t, name, find(crashLoop, ev), test.want)
	}
}

// The message of a crash letter is compared with the deaths that the checker saw.
func TestCrashLoop_ComparesTheMessageOfALetter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message, want string
		zombies       bool
	}{
		"as it was":      {said(3, 4*time.Minute), "", false},
		"others, too":    {said(4, 4*time.Minute), "", false},
		"too many":       {said(5, 4*time.Minute), "only 4 processes died, or lost the lane, by then", false},
		"too few":        {said(2, 4*time.Minute), "3 processes died in its runs by then", false},
		"too early":      {said(0, 30*time.Second), "no process had died in its runs by then", false},
		"after the copy": {said(3, 6*time.Minute), "that is later than its failure", false},
		"of zombies":     {said(2, 4*time.Minute), "", true},
		"none":           {"", "unexpected EOF", false},
	} {
		lane := trace.TP{Topic: "orders", Partition: 0}
		r := &record{script: trace.Script{Act: trace.ActKill}, origin: &kgo.Record{Topic: lane.Topic}}
		ev := &evidence{members: map[string]*trace.Member{}, journals: map[string]trace.Logged{}}
		for i := range 5 { // the first dies of another record, the last one writes the letter
			name, began := strconv.Itoa(i), int64(time.Duration(i)*time.Minute)
			ev.members[name] = &trace.Member{}
			ev.journals[name] = trace.Logged{Lanes: []trace.LaneChange{{At: began, What: trace.LaneAssigned, Lane: lane}}}
			if i == 4 {
				continue
			}
			ev.members[name].Ended = began + int64(50*time.Second)
			if test.zombies {
				ev.members[name].Suspended = [][2]int64{{began, began + int64(time.Second)}}
			}
			if i > 0 {
				r.runs = append(r.runs, &trace.Run{Member: name, Attempt: 1, Start: began + 1, Topic: lane.Topic, Lane: lane})
			}
		}
		c := &copied{meta: headers.Meta{Attempts: 1, Message: test.message, FailedAt: time.Unix(0, 0).Add(5 * time.Minute)}}
		if got := misstated(ev, r, c); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: it found %q, want %q", name, got, test.want)
		}
	}
}

// said is the message of a crash letter.
func said(deaths int, by time.Duration) string {
	return fmt.Sprintf("at least %d processes in a row died, or lost the partition, before it was finished; the last one, by %s, while nothing but its handler ran",
		deaths, time.Unix(0, 0).Add(by).UTC().Format("2006-01-02T15:04:05.000Z"))
}
