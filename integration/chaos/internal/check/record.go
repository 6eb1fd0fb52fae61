package check

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/retrytopics"
)

// record is a record of a source, and what became of it.
type record struct {
	id      int64
	script  trace.Script
	origin  *kgo.Record
	runs    []*trace.Run // in the order of their starts
	copies  []*copied    // on tiers
	letters []*copied
}

// copied is a record of a sibling.
type copied struct {
	rec  *kgo.Record
	meta headers.Meta
	err  error
	of   *record
}

// life is how often the record had been redriven when the copy was written.
func (c *copied) life() int { return c.meta.Redrive.Count }

// sent reports whether a run of redrive wrote the copy, and no failure.
func (c *copied) sent() bool { return c.meta.Attempts == 0 }

// failed is the attempt whose failure led to the copy. In a strain it counts as none, and has the
// same number again, unless it was the first.
func (c *copied) failed() int {
	if n := len(c.meta.History); n > 0 {
		return c.meta.History[n-1].Number
	}
	return c.meta.Attempts
}

// feed is a physical partition that handlers read.
type feed struct {
	trace.TP
	source bool
	at     map[int64]*delivered // by offset
}

// delivered is a record of a feed with its runs.
type delivered struct {
	offset int64
	of     *record
	copy   *copied      // nil on a source
	runs   []*trace.Run // in the order of their starts
}

// record is the record as it was delivered.
func (d *delivered) record() *kgo.Record {
	if d.copy != nil {
		return d.copy.rec
	}
	return d.of.origin
}

// ending is what has to become of the record, with the attempts that failed whatever its script
// says.
func (r *record) ending(maxAttempts, life int) trace.Ending {
	return r.script.Ending(maxAttempts, life, func(attempt int) string { return r.failedAs(life, attempt) })
}

// failedAs returns the class, as its copy has it, with which an attempt failed whatever the script
// says: in an outage, or since its process was suspended, or got no CPU time, until its time was
// over. It is empty for an attempt of which no copy says so. Attempt 0 stands for any.
func (r *record) failedAs(life, attempt int) string {
	for _, c := range slices.Concat(r.copies, r.letters) {
		if c.life() != life || (c.meta.Attempts != attempt || c.failed() != attempt) && attempt != 0 {
			continue
		}
		stalled := func(x *trace.Run) bool { return x.Stalled && x.Life == life && x.Attempt == c.failed() }
		timedOut := c.meta.Class == classify.ClassTimeout || c.meta.Class == classify.ClassDecode+"."+classify.ClassTimeout
		if c.meta.Class == trace.ClassOutage || timedOut && slices.ContainsFunc(r.runs, stalled) {
			return c.meta.Class
		}
	}
	return ""
}

// attempts are the deliveries of the record that ran.
func (r *record) attempts() map[delivery]bool {
	had := map[delivery]bool{}
	for _, x := range r.runs {
		had[delivery{x.Life, x.Attempt}] = true
	}
	return had
}

// own reports whether the team's handler failed, and so decided about the record.
func (r *record) own() bool {
	return slices.ContainsFunc(r.runs, func(x *trace.Run) bool { return x.Own })
}

// endingOf is the ending of a record whose runs led to a letter. A record that was repeated may
// have another one: an attempt failed in an outage, or timed out in a suspended process, at one
// time, and ended by its script at another.
func (r *record) endingOf(letter *copied, maxAttempts int) trace.Ending {
	return r.script.Ending(maxAttempts, letter.life(), func(attempt int) string {
		if class := r.failedAs(letter.life(), attempt); attempt < letter.meta.Attempts || letter.meta.Class == class {
			return class
		}
		return ""
	})
}

// ending is what a letter says of its record.
func (c *copied) ending() trace.Ending {
	return trace.Ending{Place: trace.PlaceDead, Attempts: c.meta.Attempts, Reason: string(c.meta.Reason), Class: c.meta.Class}
}

// isAt reports whether a copy has a place.
func (c *copied) isAt(p headers.Position) bool {
	return c.rec.Topic == p.Topic && c.rec.Partition == p.Partition && c.rec.Offset == p.Offset
}

// delivery numbers a record's attempts, in each of its lives.
type delivery struct{ life, attempt int }

// feedOf returns the feed that a record stands in.
func (v *served) feedOf(r *kgo.Record, source bool) *feed {
	at := trace.TP{Topic: r.Topic, Partition: r.Partition}
	if v.feeds[at] == nil {
		v.feeds[at] = &feed{TP: at, source: source, at: map[int64]*delivered{}}
	}
	return v.feeds[at]
}

// copyOf returns what a record of a sibling is a copy of.
func (v *served) copyOf(r *kgo.Record) *copied {
	c := &copied{rec: r}
	c.meta, c.err = headers.Parse(r.Headers)
	if sc, ok := trace.ParseScript(r.Headers); ok {
		c.of = v.records[sc.ID]
	}
	return c
}

// served is a service with what it did.
type served struct {
	trace.Service
	siblings map[string]retrytopics.Siblings // by source, with all tiers that there were
	records  map[int64]*record
	feeds    map[trace.TP]*feed
	// redriven are the committed copies that runs of redrive sent, and entries the last entry of
	// each letter in the ledger.
	redriven []*copied
	entries  map[trace.TP]map[int64]dlq.Entry
}
