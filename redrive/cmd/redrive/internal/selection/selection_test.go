package selection

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidingkafka/siding/dlq"
)

func TestNarrow_WhatNoFlagWantsIsNotRead(t *testing.T) {
	t.Parallel()
	frozen := dlq.Cursor{Topic: "orders.dlq", At: map[int32]int64{0: 10, 1: 0, 2: 5}, End: map[int32]int64{0: 100, 1: 7, 2: 5}}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "v1/orders.dlq/0:10-100,1:0-7,2:5-5"},
		{[]string{"--class", "a"}, "v1/orders.dlq/0:10-100,1:0-7,2:5-5"},
		{[]string{"--partition", "1"}, "v1/orders.dlq/1:0-7"},
		{[]string{"--partition", "9"}, "v1/orders.dlq/"},
		{[]string{"--offset", "0:20-29,0:50-59"}, "v1/orders.dlq/0:20-60"},
		{[]string{"--offset", "0:0-500"}, "v1/orders.dlq/0:10-100"},
		{[]string{"--offset", "0:0-9,1:6-"}, "v1/orders.dlq/0:10-10,1:6-7"},
		{[]string{"--offset", fmt.Sprintf("1:0-%d", int64(math.MaxInt64))}, "v1/orders.dlq/1:0-7"},
	} {
		s, err := compile(t, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Narrow(frozen).String(); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
	s, err := compile(t, "--partition", "2,7,3")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{3, 7}, s.Missing(3)); diff != "" {
		t.Errorf("missing partitions: %s", diff)
	}
}
