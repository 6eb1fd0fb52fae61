package consumers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/internal/guards"
)

func TestHeadline_SaysTheWorstFirst(t *testing.T) {
	t.Parallel()
	lane := func(s commitmark.LaneState) consumers.Lane { return consumers.Lane{Lane: commitmark.Lane{State: s}} }
	members := []consumers.Member{{ID: "a"}}
	held, strained := &guards.Guard{Held: true}, &guards.Guard{}
	stable := consumers.Group{State: "Stable", Members: members}
	for name, tt := range map[string]struct {
		group consumers.Group
		use   consumers.Use
		want  string
		bad   bool
	}{
		"well":              {stable, consumers.Use{Assigned: 3}, "runs", false},
		"left with nothing": {consumers.Group{State: "Empty"}, consumers.Use{}, "no members", false},
		"left with a lag":   {consumers.Group{State: "Empty"}, consumers.Use{Siding: true, Lag: 3}, "no members", true},
		"another left":      {consumers.Group{State: "Empty"}, consumers.Use{Lag: 3}, "no members", false},
		"left, unknown lag": {consumers.Group{State: "Dead"}, consumers.Use{Siding: true, Lag: consumers.Unknown}, "no members", true},
		"left with parked":  {consumers.Group{State: "Empty"}, consumers.Use{Siding: true, Tiers: []consumers.Tier{{Parked: 1}}}, "no members", true},
		"left while held":   {consumers.Group{State: "Empty"}, consumers.Use{Siding: true, Lag: 3, Guard: held}, "no members", true},
		"hidden":            {consumers.Group{Undescribed: errors.New("no")}, consumers.Use{}, "unknown", false},
		"hidden, and held":  {consumers.Group{Undescribed: errors.New("no")}, consumers.Use{Guard: held}, "held", true},
		"joins":             {consumers.Group{State: "PreparingRebalance", Members: members}, consumers.Use{}, "rebalancing", false},
		"strained":          {stable, consumers.Use{Assigned: 1, Guard: strained}, "strained", true},
		"one cause":         {stable, consumers.Use{Assigned: 1, Partitions: 3, Guard: held, Lanes: []consumers.Lane{lane(commitmark.Denied), lane(commitmark.Denied), lane(commitmark.Paused)}}, "denied: 2 of 3", true},
		"two causes":        {stable, consumers.Use{Assigned: 1, Partitions: 3, Lanes: []consumers.Lane{lane(commitmark.Denied), {Uncommitted: true}}}, "blocked: 2 of 3", true},
		"paused":            {stable, consumers.Use{Assigned: 1, Lanes: []consumers.Lane{lane(commitmark.Paused)}}, "paused", false},
		"no reader":         {stable, consumers.Use{Siding: true, Lag: 1}, "not read", true},
		"transaction":       {stable, consumers.Use{Assigned: 1, Lanes: []consumers.Lane{{Lane: commitmark.Lane{OpenSince: time.Now()}}}}, "waits", true},
		"suspects":          {stable, consumers.Use{Assigned: 1, Lanes: []consumers.Lane{{Suspects: commitmark.Suspects{Deaths: 2, Isolated: true}}}}, "suspects", true},
	} {
		if got, bad := consumers.Headline(&tt.group, &tt.use); got != tt.want || bad != tt.bad {
			t.Errorf("%s: got %q, %v", name, got, bad)
		}
	}
}
