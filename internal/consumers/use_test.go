package consumers_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/consumers"
)

// A thousand partitions with one fault are one trouble with a short text.
func TestUse_GroupsLanes(t *testing.T) {
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

func TestUse_NextDueIsUnknownWhereOneIs(t *testing.T) {
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
