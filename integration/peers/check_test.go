package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/peers/internal/programs"
	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// embedded connects to a broker in this process.
func embedded(t *testing.T) *rig {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	r, err := connect(cluster.ListenAddrs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cl.Close)
	return r
}

// A program that skips records, or commits before its dead letters are written, must not count as
// fast.
func TestCheck_FindsWhatIsLost(t *testing.T) {
	t.Parallel()
	r := embedded(t)
	// Records 0, 1 … of 80, of which some fail.
	template := work.Job{Seeds: r.seeds, Partitions: partitions, Records: 80, OneIn: 4}
	failing, healthy := -1, -1
	for i := range template.Records {
		if template.Fails(i) {
			failing = i
		} else {
			healthy = i
		}
	}
	all := template.Failing()
	for i, tt := range []struct {
		short   int64 // of the last partition's commit
		letters func(int) int
		rep     work.Report
		want    string
	}{
		{want: "<nil>"},
		{rep: work.Report{Handled: -1}, want: fmt.Sprintf("lost: 1 of %d records were not handled", 80-all)},
		{short: 1, want: "committed offset 9 of 10 in partition 7"},
		{letters: func(i int) int { return map[int]int{failing: -1}[i] }, want: fmt.Sprintf("lost: 1 of %d dead letters are missing", all)},
		{letters: func(i int) int { return map[int]int{failing: 1}[i] }, want: "1 dead letters are there more than once"},
		{letters: func(i int) int { return map[int]int{failing: -1, healthy: 1}[i] }, want: fmt.Sprintf("lost: 1 of %d dead letters are missing", all)},
		{letters: func(i int) int { return map[int]int{healthy: 1}[i] }, want: "1 healthy records are dead letters"},
		{rep: work.Report{Disorder: 2}, want: "2 records began before the last one of their key had ended"},
	} {
		j := template
		j.Topic, j.Group = fmt.Sprintf("orders-%d", i), fmt.Sprintf("billing-%d", i)
		j.DLQ = j.Topic + ".dlq"
		leave(t, r, j, tt.short, tt.letters)
		tt.rep.Handled += 80 - all
		if err := check(t.Context(), r, j, tt.rep); fmt.Sprint(err) != tt.want {
			t.Errorf("case %d: got %v, want %s", i, err, tt.want)
		}
	}
}

// leave leaves what a program does that does its work, but for so many offsets of the last
// partition, and for more or fewer letters of some records.
func leave(t *testing.T, r *rig, j work.Job, short int64, more func(int) int) {
	t.Helper()
	ctx := t.Context()
	for _, topic := range []string{j.Topic, j.DLQ} {
		if err := r.create(ctx, topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.fill(ctx, j); err != nil {
		t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	for p := range int32(partitions) {
		at := int64(j.Records / partitions)
		if p == partitions-1 {
			at -= short
		}
		offsets.AddOffset(j.Topic, p, at, -1)
	}
	if err := r.admin.CommitAllOffsets(ctx, j.Group, offsets); err != nil {
		t.Fatal(err)
	}
	if err := r.write(ctx, 0, func(yield func(*kgo.Record) bool) {
		for i := range j.Records {
			n := 0
			if j.Fails(i) {
				n = 1
			}
			if more != nil {
				n += more(i)
			}
			for range n {
				letter := record(j, i, i, i, time.Time{})
				letter.Topic = j.DLQ
				if !yield(letter) {
					return
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// Each program does its work on the embedded broker: an update of its library must not turn a
// comparison into one of failures.
func TestTrial_EachProgramLosesNothing(t *testing.T) {
	t.Parallel()
	r := embedded(t)
	for _, p := range programs.All {
		for _, j := range []work.Job{
			{Records: 400, OneIn: 4},
			{Records: 400, OneIn: 20, Rate: 2_000, Waits: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond}},
			{Records: 400, Keys: 40, Slots: 10, Nap: time.Millisecond},
		} {
			t.Run(fmt.Sprintf("%s/%d/%d", p.Name, j.Keys, j.Rate), func(t *testing.T) {
				t.Parallel()
				j.Program, j.Seeds, j.Partitions = p.Name, r.seeds, partitions
				j.Topic = fmt.Sprintf("%s-%d-%d", p.Name, j.Keys, j.Rate)
				j.Group, j.DLQ = j.Topic, j.Topic+".dlq."+j.Topic
				tryOut(t, r, p, j)
			})
		}
	}
}

// tryOut runs a program in this process.
func tryOut(t *testing.T, r *rig, p programs.Program, j work.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := prepare(ctx, r, p, j); err != nil {
		t.Fatal(err)
	}
	if j.Rate == 0 {
		if err := r.create(ctx, j.Topic); err != nil {
			t.Fatal(err)
		}
		if err := r.fill(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	out, in := io.Pipe()
	failed := make(chan error, 1)
	go func() { failed <- trial(ctx, j, in); in.Close() }()
	c := lines{bufio.NewReader(out)}
	if j.Rate > 0 {
		if line, _ := c.line(); line != "ready" {
			t.Fatalf("it is not ready: %v", <-failed)
		}
		if err := r.offer(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := c.report()
	if err != nil {
		t.Fatalf("%v: %v", err, <-failed)
	}
	if err := check(ctx, r, j, rep); err != nil {
		t.Error(err)
	}
	if rep.Seconds <= 0 || rep.CPU <= 0 || j.Rate > 0 && (rep.P99 <= 0 || rep.Healthy <= 0) {
		t.Errorf("measured nothing: %+v", rep)
	}
}
