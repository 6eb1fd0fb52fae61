package console

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// mostMarks bounds the lines of a sort; those that came last count.
const mostMarks = 6

// mark adds the releases whose first letter failed in the picture's time, and the runs that began
// in it. path is that of their topic.
func (p *picture) mark(w window, releases []letterindex.Release, runs []redrive.Outcome, path string, now time.Time) {
	end := w.from.Add(time.Duration(w.n) * w.by)
	var all [2][]mark
	add := func(sort int, at time.Time, m mark) {
		if at.Before(w.from) || !at.Before(end) {
			return
		}
		m.X, m.At = int(at.Sub(w.from)*barWidth/w.by), momentOf(at, now)
		if all[sort] = append(all[sort], m); len(all[sort]) > mostMarks {
			all[sort] = all[sort][1:]
		}
	}
	for _, r := range releases {
		add(0, r.First, mark{Class: "release", Text: "first failure of " + r.Version})
	}
	for i := range runs {
		r := &runs[i]
		add(1, r.Started, mark{Class: "run", Text: "run by " + r.By, Link: runPath(path, r.ID)})
	}
	p.Marks = slices.Concat(all[0], all[1])
}

// beginning says when, where and in which release the first letter of a picture failed.
type beginning struct {
	Clock, Link string
	At          moment
	// Who is the process and its release, as far as they are known.
	Who string
}

// beginningOf returns the beginning of which a letter tells. host is that of its process; empty if
// it is not known.
func beginningOf(l *api.Letter, host, path string, f *Filter, now time.Time) *beginning {
	first := *f
	first.Cursor = ""
	b := &beginning{Link: letterPath(path, l.Partition, l.Offset) + first.query(), At: momentOf(l.FailedAt, now)}
	b.Clock = "Jan 2 15:04:05"
	if l.FailedAt.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		b.Clock = time.TimeOnly
	}
	b.Clock = l.FailedAt.UTC().Format(b.Clock) + " UTC"
	if host != "" {
		b.Who = "by " + host
	}
	if l.Version != "" {
		if b.Who != "" {
			b.Who += ", "
		}
		b.Who += "release " + l.Version
	}
	return b
}
