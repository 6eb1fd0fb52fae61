package look_test

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// What could not be found out is unknown, never zero: an operator would take zero for good news.
func TestReadTopicStats_WhatIsUnknownIsNotZero(t *testing.T) {
	t.Parallel()
	b := roottest.SomeTopics(t)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	for _, args := range [][]string{{"topics"}, {"topics", "--parked"}} {
		got := b.Redrive(t, append(args, "-o", "json")...)
		var rows []struct{ Topic, Letters, Open, Resolved, LastHour, Parked any }
		if err := json.Unmarshal([]byte(got.Stdout), &rows); err != nil || len(rows) < 2 || got.Code != cli.ExitDone {
			t.Fatalf("%q: %+v, %v", args, got, err)
		}
		for _, r := range rows {
			if r.Letters != nil || r.Open != nil || r.Resolved != nil || r.LastHour != nil || r.Parked != nil {
				t.Errorf("%q: %+v, want nothing known", args, r)
			}
		}
		roottest.Prints(t, got, cli.ExitDone, `"source":"orders"`, "warning: not authorized: the user needs DESCRIBE on topic orders.", args)
	}
}
