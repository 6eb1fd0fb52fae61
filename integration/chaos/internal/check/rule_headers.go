package check

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// headersRule: what a copy's headers say is true, and key, value and the user's headers are as they
// were.
func headersRule(ev *evidence, f *findings) {
	for s, r := range ev.records() {
		for _, c := range slices.Concat(r.copies, r.letters) {
			if wrong := untrue(r, c, s.Group); len(wrong) > 0 {
				f.add(r, c.rec, r.runs, "its copy is wrong about %s", strings.Join(wrong, ", "))
			}
		}
	}
}

// untrue lists what a copy has wrong.
func untrue(r *record, c *copied, group string) (wrong []string) {
	if c.err != nil {
		return []string{c.err.Error()}
	}
	check := func(name string, ok bool) {
		if !ok {
			wrong = append(wrong, name)
		}
	}
	o := r.origin
	check("key", bytes.Equal(c.rec.Key, o.Key) && (c.rec.Key == nil) == (o.Key == nil))
	check("value", bytes.Equal(c.rec.Value, o.Value) && (c.rec.Value == nil) == (o.Value == nil))
	user := headers.Strip(slices.Clone(c.rec.Headers))
	check("the user's headers", slices.EqualFunc(user, o.Headers, func(a, b kgo.RecordHeader) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
	}))
	m, attempt := c.meta, c.failed()
	if c.sent() {
		return wrong // the rest is about a failure
	}
	at := m.Original
	check("the original position", at.Topic == o.Topic && at.Partition == o.Partition && at.Offset == o.Offset)
	check("the original timestamp", at.Timestamp.UnixMilli() == o.Timestamp.UnixMilli())
	check("the partition", c.rec.Partition == o.Partition)
	check("the group", m.Group == group)
	failed := m.FailedAt.UnixMilli()
	// What kills nothing may never run.
	innocent := m.Reason == headers.Reason(trace.ReasonCrashLoop) && !r.script.Kills()
	check("the time of the failure", innocent || slices.ContainsFunc(r.runs, func(x *trace.Run) bool {
		switch {
		case x.Attempt != attempt:
			return false
		case x.End == 0:
			// A member condemns it after its runs, and after further members may have died.
			return m.Reason == headers.Reason(trace.ReasonCrashLoop) && failed >= x.Start/int64(time.Millisecond)-1 && failed <= c.rec.Timestamp.UnixMilli()
		default:
			since := failed - x.End/int64(time.Millisecond)
			return x.Life == c.life() && since >= -1 && since < 60_000
		}
	}))
	check("the first failure", !m.FirstFailedAt.After(m.FailedAt))
	if n := len(m.History); n > 0 {
		free := m.Reason == "" && attempt == m.Attempts+1
		check("the history", (free || attempt == m.Attempts) && m.History[n-1].Class == m.Class)
	} else {
		check("the history, which is empty", false)
	}
	return wrong
}
