package operate

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// Beginning is how an incident began.
type Beginning struct {
	// First is the letter that failed first within some time; nil if none did.
	First *api.Letter
	// Releases are the versions that failed, each with its first letter of all times.
	Releases []letterindex.Release
}

// Began returns how the failures within some time began, of the letters that a filter selects. A
// filter that takes reading letters counts without that.
func Began(ctx context.Context, d *Desk, who *access.Identity, topic string, f *api.Filter, from, until time.Time) (Beginning, error) {
	t, sel, err := choose(ctx, d, who, topic, f, access.Viewer)
	if err != nil {
		return Beginning{}, err
	}
	always := sel.Filter
	always.Since, always.Until = time.Time{}, time.Time{}
	is := Beginning{Releases: letterindex.Releases(t.Index, &always)}
	within := sel.Filter
	if within.Since.Before(from) {
		within.Since = from
	}
	if within.Until.IsZero() || until.Before(within.Until) {
		within.Until = until
	}
	if row, ok := letterindex.First(t.Index, &within); ok {
		first := letterOf(&row)
		is.First = &first
	}
	return is, nil
}
