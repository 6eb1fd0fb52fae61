package check

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// Finding is a promise that was broken, for one record or partition.
type Finding struct {
	Rule      string
	Record    int64 // its number in the run, -1 for none
	Topic     string
	Partition int32
	Offset    int64
	Text      string
	Lines     []string // of journals
}

// findings are what a rule found.
type findings struct {
	rule    string
	broken  []Finding
	counted map[string]int
	// excluded counts what a rule let pass, since a fault of the run explains it.
	excluded map[string]int
}

// report adds a violation that is about no record.
func (f *findings) report(topic string, partition int32, offset int64, format string, args ...any) {
	f.broken = append(f.broken, Finding{
		Rule: f.rule, Record: -1, Topic: topic, Partition: partition, Offset: offset, Text: fmt.Sprintf(format, args...),
	})
}

// add adds a violation about a record of a feed.
func (f *findings) add(of *record, at *kgo.Record, runs []*trace.Run, format string, args ...any) {
	v := Finding{
		Rule: f.rule, Record: of.id, Topic: at.Topic, Partition: at.Partition, Offset: at.Offset,
		Text: fmt.Sprintf(format, args...) + fmt.Sprintf(" (its script: %s, %d times, %s)", of.script.Act, of.script.Times, of.script.Class),
	}
	for _, r := range runs {
		v.Lines = append(v.Lines, r.String())
	}
	f.broken = append(f.broken, v)
}
