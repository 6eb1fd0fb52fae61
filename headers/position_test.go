package headers

import (
	"strings"
	"testing"
)

func TestPosition_RoundTrips(t *testing.T) {
	t.Parallel()
	for _, want := range []Position{
		{Topic: "orders.dlq", Partition: 3, Offset: 12},
		{Topic: "a-b_c.D9", Partition: 1<<31 - 1, Offset: 1<<63 - 1},
		{Topic: strings.Repeat("t", 249)},
	} {
		got, err := ParsePosition(want.String())
		if err != nil || got != want {
			t.Errorf("ParsePosition(%s) = %+v, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "/", "//", "t", "t/1", "t/1/", "t//1", "t/1/2/3", "t/+1/2", "./1/2", "a b/1/2", "t/2147483648/1", "t/1/9223372036854775808"} {
		if got, err := ParsePosition(s); err == nil || got != (Position{}) {
			t.Errorf("ParsePosition(%q) = %+v, %v; want an error", s, got, err)
		}
	}
}
