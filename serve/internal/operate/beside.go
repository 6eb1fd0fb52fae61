package operate

import (
	"context"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// Beside returns the letters before and after one in the list that a filter selects; nil for none.
// There are none either if the filter takes reading letters: only the list itself knows them.
func Beside(ctx context.Context, d *Desk, who *access.Identity, at *request.Letter, f *api.Filter) (before, after *selection.Place, err error) {
	t, sel, err := choose(ctx, d, who, at.Topic.Topic, f, access.Viewer)
	if err != nil || sel.Reads != nil {
		return nil, nil, err
	}
	place := func(r *letterindex.Row) *selection.Place {
		if r == nil {
			return nil
		}
		return &selection.Place{Partition: r.Partition, Offset: r.Offset}
	}
	b, a := letterindex.Beside(t.Index, &sel.Filter, len(f.State) > 0, at.Partition, at.Offset)
	return place(b), place(a), nil
}
