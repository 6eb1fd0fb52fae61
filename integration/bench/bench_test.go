package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestChooseRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	all := []bench{{name: "a"}, {name: "b"}, {name: "c"}}
	for _, tt := range []struct {
		names []string
		want  string
		err   string
	}{
		{nil, "abc", ""},
		{[]string{"c", "a"}, "ac", ""},
		{[]string{"a", "x"}, "", "no bench named x"},
	} {
		got, err := choose(all, tt.names)
		var names string
		for _, b := range got {
			names += b.name
		}
		if names != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("choose(%q) = %q, %v; want %q, %q", tt.names, names, err, tt.want, tt.err)
		}
	}
}

// The ratio is taken inside each round: the median of the quotients, not the
// quotient of the medians.
func TestJudgeTakesTheMedianOfRounds(t *testing.T) {
	t.Parallel()
	round := func(siding, bare float64) map[string]report {
		return map[string]report{"siding": {Records: 100, Seconds: siding}, "bare": {Records: 100, Seconds: bare}}
	}
	b := bench{lines: []line{speed.versus("speed", atLeast(0.9), "siding", "bare")}}
	rounds := []map[string]report{round(1, 0.95), round(10, 9.1), round(2, 1)}
	got := judge(b, kindKafka, rounds)[0]
	want := result{Name: "speed", Broker: "kafka", Ratio: 0.91, Min: 0.5, Max: 0.95, Goal: ">= 0.9", OK: true, Unit: "x", Absolute: []absolute{
		{"siding", 50, "records/s"}, {"bare", 100, "records/s"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestJudgeHoldsTheWorstRoundToAPromise(t *testing.T) {
	t.Parallel()
	of := tooEarly.alone("", atMost(0), "siding").of
	round := func(early int) map[string]report {
		return map[string]report{"siding": {Late: []spread{{}, {Early: early}}}}
	}
	rounds := []map[string]report{round(0), round(2), round(0)}
	for _, tt := range []struct {
		line  line
		ratio float64
		ok    bool
	}{
		{line{goal: atMost(0), of: of}, 0, true},
		{line{goal: atMost(0), of: of, worst: true}, 2, false},
		{line{goal: atLeast(0), of: of, worst: true}, 0, true},
	} {
		got := judge(bench{lines: []line{tt.line}}, kindKafka, rounds)[0]
		if got.Ratio != tt.ratio || got.OK != tt.ok {
			t.Errorf("goal %v, worst %v: got %v, %v; want %v, %v", tt.line.goal, tt.line.worst, got.Ratio, got.OK, tt.ratio, tt.ok)
		}
	}
}

// Neither siding's own count nor the wire's may improve the other.
func TestRefetchedIsTheWorseOfTheTwoCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		r    report
		want float64
	}{
		{"nothing evicted, nothing read again", report{Held: 200, Filled: 100, Fetched: 100}, 0},
		{"not all read yet", report{Held: 200, Filled: 100, Fetched: 60}, 0},
		{"by its own count", report{Held: 200, Released: 100, Refetched: 110, Filled: 100, Fetched: 150}, 1.1},
		{"by the wire", report{Held: 200, Released: 100, Refetched: 100, Filled: 100, Fetched: 175}, 1.5},
		{"without need", report{Held: 200, Filled: 100, Fetched: 150}, 100},
	} {
		if got := tt.r.refetched(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestProgressEndsWithTheLastPartition(t *testing.T) {
	t.Parallel()
	begun := 0
	p := newProgress(data{Ends: []int64{2, 0, 1}}, func() { begun++ })
	for i, r := range []kgo.Record{
		{Partition: 0, Offset: 0},
		{Partition: 0, Offset: 1},
		{Partition: 0, Offset: 1}, // delivered again
		{Partition: 2, Offset: 0},
	} {
		select {
		case <-p.done:
			t.Fatalf("done before record %d", i)
		default:
		}
		p.observe(&r)
	}
	select {
	case <-p.done:
	default:
		t.Error("not done after the last record")
	}
	if begun == 0 {
		t.Error("never begun")
	}
}

// The bench of keys compares with a figure that was measured with naps of
// 2.5 ms in the mean.
func TestNapsAreEvenlySpread(t *testing.T) {
	t.Parallel()
	const n = 10_000
	var sum, longest time.Duration
	for i := range n {
		d := nap(i, 5*time.Millisecond)
		if d < 0 {
			t.Fatalf("nap(%d) = %v", i, d)
		}
		sum, longest = sum+d, max(longest, d)
	}
	if mean := sum / n; mean < 2450*time.Microsecond || mean > 2550*time.Microsecond {
		t.Errorf("mean nap %v, want 2.5 ms", mean)
	}
	if longest > 5*time.Millisecond || longest < 4900*time.Microsecond {
		t.Errorf("longest nap %v, want just under 5 ms", longest)
	}
}

func TestCopiesKeepTheRecord(t *testing.T) {
	t.Parallel()
	records := []*kgo.Record{
		{Topic: "src", Partition: 3, Offset: 41, Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(1700), Headers: userHeaders(2)},
		{Topic: "src", Partition: 3, Offset: 42, Value: []byte("w"), Timestamp: time.UnixMilli(1800)},
	}
	slab := copyBatch(records, job{To: "copies", Group: "g", Headers: allHeaders})
	for i, r := range records {
		c := slab[i]
		if c.Topic != "copies" || c.Partition != 3 || string(c.Key) != string(r.Key) || string(c.Value) != string(r.Value) {
			t.Errorf("copy %d is %+v", i, c)
		}
		if got, want := len(c.Headers), len(r.Headers)+allHeaders; got != want {
			t.Errorf("copy %d has %d headers, want %d", i, got, want)
		}
	}
	seen := make(map[string]string)
	for _, h := range slab[1].Headers {
		seen[h.Key] = string(h.Value)
	}
	if seen["dlq-original-offset"] != "42" || !strings.Contains(seen["dlq-meta"], "ts=1800;") || len(seen) != allHeaders {
		t.Errorf("headers %v", seen)
	}
}
