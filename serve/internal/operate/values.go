package operate

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
	"github.com/sidingkafka/siding/serve/where"
)

// CountValues counts letters by a field. They have to be read, so it takes the role reader, and its
// work is bounded: it reads the newest ones first.
func CountValues(ctx context.Context, d *Desk, who *access.Identity, in *request.Values) (api.Values, error) {
	t, sel, err := choose(ctx, d, who, in.Topic.Topic, &in.Filter, access.Reader)
	if err != nil {
		return api.Values{}, err
	}
	field, err := where.ParseField(in.By)
	if err != nil {
		return api.Values{}, failure.NewProblem(api.BadFilter, "by: %v", err)
	}
	return Attend(ctx, d, t, func(ctx context.Context) (api.Values, error) {
		v, err := readValues(ctx, d, t, sel, field, len(in.State) > 0)
		v.By = in.By
		return v, err
	})
}

// readValues reads letters until all are counted, or a bound is reached.
func readValues(ctx context.Context, d *Desk, t *watch.Topic, sel *selection.Selection, field *where.Field, resolved bool) (v api.Values, err error) {
	var counts dlq.ValueCounts
	until, before, read := time.Now().Add(longestRead), dlq.Cursor{}, 0
	for more := true; more && read < mostRead && time.Now().Before(until); {
		rows, next, further := t.Index.Page(&sel.Filter, resolved, before, min(firstBatch, mostRead-read))
		places := make([]selection.Place, len(rows))
		for i := range rows {
			places[i] = selection.Place{Partition: rows[i].Partition, Offset: rows[i].Offset}
		}
		n, err := countPlaces(ctx, d, t, places, until, func(l *dlq.Letter) {
			if sel.Reads == nil || sel.Reads(l) {
				shown, hidden, _ := d.cfg.View.Letter(ctx, l)
				field.Count(shown, hidden, &counts)
				v.Counted++
			}
		})
		if err != nil {
			return api.Values{}, err
		}
		read, before, more = read+len(rows), next, further
		v.Complete = !further && n == len(places)
	}
	top := counts.Top()
	v.Top, v.Others, v.Without, v.Hidden = []api.ValueCount{}, top.Others, top.Without, top.Hidden
	v.Values, v.Exact, v.Problem = top.Values, top.Exact, sel.Problem()
	for _, is := range top.Top {
		v.Top = append(v.Top, api.ValueCount{Value: is.Value, Open: is.Open, AtLeast: is.AtLeast})
	}
	return v, nil
}

// countPlaces counts the letters at some places. n is how many of the places it came to until a
// time: all, if the time was enough, also if some of the letters have expired.
func countPlaces(ctx context.Context, d *Desk, t *watch.Topic, places []selection.Place, until time.Time, count func(*dlq.Letter)) (n int, err error) {
	if len(places) == 0 {
		return 0, nil
	}
	for l, err := range selection.ReadAt(ctx, t.DeadLetterTopic.Topic, places, d.cfg.Kafka...) {
		if err != nil {
			return n, err
		}
		count(l)
		if n++; n < len(places) && time.Now().After(until) {
			return n, nil
		}
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
	}
	return len(places), nil
}
