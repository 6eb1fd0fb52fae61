package operate

import (
	"context"
	"maps"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// ListGroups returns the open letters by class and fingerprint. Filters that take reading the
// letters are refused: groups are counted by the index.
func ListGroups(ctx context.Context, d *Desk, who *access.Identity, in *request.Groups) ([]api.Group, error) {
	if selection.ReadsLetters(&in.Filter) {
		return nil, failure.NewProblem(api.BadFilter, "groups are counted without reading the letters: key, header, attempts and where are for lists of letters")
	}
	t, sel, err := choose(ctx, d, who, in.Topic.Topic, &in.Filter, access.Viewer)
	if err != nil {
		return nil, err
	}
	first := t.Classes.Firsts()
	all := []api.Group{}
	for _, g := range t.Index.Select(&sel.Filter).Groups {
		host, version := d.cfg.Redact.Consumer(g.FirstSeen.Host, g.FirstSeen.Version)
		all = append(all, api.Group{
			Class: g.Class, Fingerprint: g.Fingerprint, Open: g.Open, First: g.First.UTC(), Last: g.Last.UTC(), New: time.Since(first[g.Class]) < watch.NewFor, FailedAgain: g.FailedAgain,
			Groups: g.Groups, Versions: g.Versions, Reasons: g.Reasons, Sample: d.cfg.Redact.Message(g.Sample), Partition: g.Partition, Offset: g.Offset,
			FirstSeen: api.FirstSeen{
				At: g.FirstSeen.At.UTC(), Host: host, Version: version, Frame: g.FirstSeen.Frame,
				Partition: g.FirstSeen.Partition, Offset: g.FirstSeen.Offset,
			},
		})
	}
	return all, nil
}

// ListLetters returns a page of letters, the newest first.
func ListLetters(ctx context.Context, d *Desk, who *access.Identity, in *request.Letters) (api.Letters, error) {
	t, sel, err := choose(ctx, d, who, in.Topic.Topic, &in.Filter, access.Viewer)
	if err != nil {
		return api.Letters{}, err
	}
	var before dlq.Cursor
	if in.Cursor != "" {
		if before, err = dlq.ParseCursor(in.Cursor); err != nil {
			return api.Letters{}, failure.NewProblem(api.BadCursor, "the cursor cannot be read: %v: begin without one", err)
		}
		if before.Topic != in.Topic.Topic || len(before.End) == 0 {
			return api.Letters{}, failure.NewProblem(api.BadCursor, "the cursor is of %q: begin without one", before.Topic)
		}
	}
	resolved := len(in.State) > 0
	if sel.Reads != nil {
		return Attend(ctx, d, t, func(ctx context.Context) (api.Letters, error) {
			return readPage(ctx, d, t, sel, resolved, before, in.Limit)
		})
	}
	rows, next, more := t.Index.Page(&sel.Filter, resolved, before, in.Limit)
	page := api.Letters{Letters: []api.Letter{}}
	for i := range rows {
		page.Letters = append(page.Letters, letterOf(&rows[i]))
	}
	if more {
		page.Next = next.String()
	}
	return page, nil
}

// Bounds of the work for a page whose letters have to be read. The time is looked at for each one:
// an expression may take a second for a letter.
const (
	mostRead     = 20_000
	longestRead  = 5 * time.Second
	firstBatch   = 200
	largestBatch = 5_000
)

// readPage returns a page of letters that a selection cannot choose without reading them. It goes
// through what the index selects, the newest first, until the page is full or a bound is reached.
// So a page may be short, and even empty, though there is a next one. A page has one letter behind
// it at least: if the first batch takes too long, a smaller one is read.
func readPage(ctx context.Context, d *Desk, t *watch.Topic, sel *selection.Selection, resolved bool, before dlq.Cursor, limit int) (page api.Letters, err error) {
	page.Letters = []api.Letter{}
	defer func() { page.Problem = sel.Problem() }()
	until := time.Now().Add(longestRead)
	for batch := firstBatch; ; batch = min(2*batch, largestBatch) {
		rows, next, more := t.Index.Page(&sel.Filter, resolved, before, batch)
		fits, n, err := fitting(ctx, d, t, sel, rows, until)
		switch {
		case err != nil:
			return page, problemOn(ctx, d, t, err)
		case n < len(rows) && page.Examined > 0:
			page.Next = before.String()
			return page, nil
		case n < len(rows):
			batch, until = max(1, n/8), time.Now().Add(longestRead/4) // doubled below
			continue
		}
		for i := range rows {
			if len(page.Letters) == limit { // the next page begins with this row
				next.End = maps.Clone(next.End)
				for _, r := range rows[i:] {
					next.End[r.Partition] = max(next.End[r.Partition], r.Offset+1)
				}
				page.Next = next.String()
				return page, nil
			}
			page.Examined++
			if fits[selection.Place{Partition: rows[i].Partition, Offset: rows[i].Offset}] {
				page.Letters = append(page.Letters, letterOf(&rows[i]))
			}
		}
		before = next
		switch {
		case !more:
			return page, nil
		case len(page.Letters) == limit || page.Examined >= mostRead || time.Now().After(until):
			page.Next = next.String()
			return page, nil
		}
	}
}

// fitting reads the letters of rows, and returns the places of those that a selection chooses. n is
// how many rows it came to until a time; the last one does not end it.
func fitting(ctx context.Context, d *Desk, t *watch.Topic, sel *selection.Selection, rows []letterindex.Row, until time.Time) (fits map[selection.Place]bool, n int, err error) {
	fits = map[selection.Place]bool{}
	if len(rows) == 0 {
		return fits, 0, nil
	}
	places := make([]selection.Place, len(rows))
	for i := range rows {
		places[i] = selection.Place{Partition: rows[i].Partition, Offset: rows[i].Offset}
	}
	for l, err := range selection.ReadAt(ctx, t.DeadLetterTopic.Topic, places, d.cfg.Kafka...) {
		if err != nil {
			return nil, n, err
		}
		fits[selection.Place{Partition: l.Record.Partition, Offset: l.Record.Offset}] = sel.Reads(l)
		if n++; n < len(rows) && time.Now().After(until) {
			return fits, n, nil
		}
		if ctx.Err() != nil {
			return nil, n, context.Cause(ctx)
		}
	}
	return fits, len(rows), nil // some may have expired
}

func letterOf(r *letterindex.Row) api.Letter {
	return api.Letter{
		Partition: r.Partition, Offset: r.Offset, State: string(r.State), FailedAt: r.FailedAt.UTC(), EnteredAt: r.EnteredAt.UTC(),
		Class: r.Kind.Class, Fingerprint: r.Kind.Fingerprint, Reason: string(r.Kind.Reason), Group: r.Kind.Group, Version: r.Kind.Version, Dialect: r.Kind.Dialect,
	}
}

// CountOpen returns how many open letters a filter selects.
func CountOpen(ctx context.Context, d *Desk, who *access.Identity, topic string, f *api.Filter) (int64, error) {
	t, sel, err := chooseOpen(ctx, d, who, topic, f)
	switch {
	case err != nil:
		return 0, err
	case sel.Reads == nil:
		return t.Index.Select(&sel.Filter).Open, nil
	}
	return Attend(ctx, d, t, func(ctx context.Context) (n int64, err error) {
		frozen, err := dlq.Freeze(ctx, topic, d.cfg.Kafka...)
		if err != nil {
			return 0, err
		}
		for _, err := range dlq.NewLedger(topic, t.Ledger, d.cfg.Kafka...).Letters(ctx, sel.Whole(), frozen, dlq.OpenOnly) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	})
}
