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

// A thousand partitions with one fault are one trouble with a short text.
func TestUseTroubles_GroupsLanes(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	u := consumers.Use{Partitions: 1000}
	for p := range int32(1000) {
		u.Lanes = append(u.Lanes, consumers.Lane{Partition: p, Lag: 2, Lane: commitmark.Lane{State: commitmark.Denied, Since: began.Add(time.Duration(1000-p) * time.Second)}})
	}
	u.Lanes[7].State, u.Lanes[9].State, u.Lanes[9].OpenSince, u.Lanes[8].Lag = commitmark.Stopped, commitmark.Stopped, began, consumers.Unknown
	all := u.Troubles()
	if len(all) != 3 || len(all[0].Partitions) != 998 || !all[0].Since.Equal(began.Add(time.Second)) || all[0].Lag != consumers.Unknown || all[1].Lag != 4 {
		t.Fatalf("got %+v", all)
	}
	for i, want := range []string{"partitions 0, 1, 2, 3, 4, 5, 6, 8 and 990 more", "partitions 7, 9", "partition 9"} {
		if got := all[i].Of(u.Partitions); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := all[1].Of(2); got != "all 2 partitions" {
		t.Errorf("got %q", got)
	}
}

func TestUseNextDue_IsUnknownWhereOneIs(t *testing.T) {
	t.Parallel()
	due := time.Unix(1_800_000_000, 0)
	u := consumers.Use{Tiers: []consumers.Tier{{Parked: 0}, {Parked: 2, NextDue: due.Add(time.Hour)}, {Parked: 1, NextDue: due}}}
	if u.NextDue() != due || u.Parked() != 3 {
		t.Errorf("got %v, %d", u.NextDue(), u.Parked())
	}
	u.Tiers = append(u.Tiers, consumers.Tier{Parked: consumers.Unknown})
	if !u.NextDue().IsZero() || u.Parked() != consumers.Unknown {
		t.Errorf("got %v, %d", u.NextDue(), u.Parked())
	}
}
