package held

import (
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

// A standstill began when its group says so, or when it was first seen: a group that is gone says
// nothing, and a clock may be fast. Another one of the same group begins later.
func TestStandstills_KnowSinceWhen(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 23, 17, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return began.Add(d) }
	two := int64(2)
	guard := func(since time.Time) *api.Guard { return &api.Guard{State: Held, Since: since} }
	stopped, open := at(-time.Hour), at(-2*time.Hour)
	for name, test := range map[string]struct {
		looks []api.Consumer // one a minute
		want  []string       // kinds and times after began, of the last look
	}{
		"gone":                    {[]api.Consumer{{Siding: true, State: "no members", Lag: &two}, {Siding: true, State: "no members", Parked: &two}}, []string{"gone 0s"}},
		"gone, with nothing left": {[]api.Consumer{{Siding: true, State: "no members", Lag: new(int64)}}, nil},
		"a tool is gone":          {[]api.Consumer{{State: "no members", Lag: &two}}, nil},
		"gone, back, gone":        {[]api.Consumer{{Siding: true, State: "no members", Lag: &two}, {Siding: true, State: "runs"}, {Siding: true, State: "no members", Lag: &two}}, []string{"gone 2m0s"}},
		"held":                    {[]api.Consumer{{Guard: guard(at(-time.Hour))}, {Guard: guard(at(-time.Hour))}}, []string{"held -1h0m0s"}},
		"held, its clock is fast": {[]api.Consumer{{Guard: guard(at(time.Hour))}, {Guard: guard(at(time.Hour))}}, []string{"held 0s"}},
		"strained":                {[]api.Consumer{{Guard: &api.Guard{State: Strained, Since: at(-time.Hour)}}}, nil},
		"blocked, then held too": {[]api.Consumer{
			{Troubles: []api.ConsumerTrouble{{Kind: "unassigned"}, {Kind: "transaction", Since: &open}}},
			{Guard: guard(at(0)), Troubles: []api.ConsumerTrouble{{Kind: "unassigned"}, {Kind: "blocked", Since: &stopped}}},
		}, []string{"held 0s", "blocked -1h0m0s"}},
		"paused, and isolates": {[]api.Consumer{{Troubles: []api.ConsumerTrouble{{Kind: "paused", Since: &stopped}, {Kind: "suspects"}, {Kind: "transaction"}}}}, nil},
	} {
		var all []Standstill
		for i := range test.looks {
			all = standstills(&test.looks[i], all, at(time.Duration(i)*time.Minute))
		}
		var got []string
		for _, s := range all {
			got = append(got, s.Kind+" "+s.Since.Sub(began).String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
