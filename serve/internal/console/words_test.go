package console

import (
	"testing"
	"time"
)

func TestSpan_IsOneUnit(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		20 * time.Second: "20 s", 59*time.Second + 999*time.Millisecond: "59 s", 5 * time.Minute: "5 min", 4*time.Hour + 50*time.Minute: "4 h", 47 * time.Hour: "47 h", 48 * time.Hour: "2 d",
		9 * 24 * time.Hour: "9 d", 0: "0 ms", -3 * time.Hour: "3 h", 2000 * 24 * time.Hour: "2,000 d",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
