package operate

import (
	"cmp"
	"context"
	"slices"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// ListClasses returns the groups of [ListGroups] by class, the class with the most open letters
// first.
func ListClasses(ctx context.Context, d *Desk, who *access.Identity, in *request.Groups) ([]api.Class, error) {
	groups, err := ListGroups(ctx, d, who, in)
	if err != nil {
		return nil, err
	}
	return FoldGroups(groups), nil
}

// FoldGroups folds groups, the largest first, by class.
func FoldGroups(groups []api.Group) []api.Class {
	all := []api.Class{}
	at := map[string]int{}
	for _, g := range groups {
		i, ok := at[g.Class]
		if !ok {
			i = len(all)
			at[g.Class] = i
			all = append(all, api.Class{Class: g.Class, First: g.First, Last: g.Last, FirstSeen: g.FirstSeen})
		}
		c := &all[i]
		c.Open, c.FailedAgain, c.New = c.Open+g.Open, c.FailedAgain+g.FailedAgain, g.New
		if g.First.Before(c.First) {
			c.First = g.First
		}
		if g.Last.After(c.Last) {
			c.Last = g.Last
		}
		if g.FirstSeen.At.Before(c.FirstSeen.At) {
			c.FirstSeen = g.FirstSeen
		}
		c.Groups = append(c.Groups, g)
	}
	slices.SortStableFunc(all, func(a, b api.Class) int { return cmp.Or(cmp.Compare(b.Open, a.Open), cmp.Compare(a.Class, b.Class)) })
	return all
}
