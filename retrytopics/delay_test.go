package retrytopics

import (
	"testing"
	"time"
)

func TestDelay_IsWrittenInItsShortestForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{time.Millisecond, "1ms"},
		{1500 * time.Millisecond, "1.5s"},
		{5 * time.Second, "5s"},
		{10 * time.Minute, "10m"},
		{60*time.Second + 500*time.Millisecond, "1m0.5s"},
		{time.Hour, "1h"},
		{10 * time.Hour, "10h"},
		{90 * time.Minute, "1h30m"},
		{time.Hour + 5*time.Second, "1h5s"},
		{time.Hour + 500*time.Millisecond, "1h0.5s"},
		{time.Hour + 10*time.Minute + 10*time.Second, "1h10m10s"},
		{100 * time.Hour, "100h"},
	} {
		if got := FormatDelay(c.d); got != c.want {
			t.Errorf("FormatDelay(%d) = %q, want %q", c.d, got, c.want)
		}
		if got, ok := ParseDelay(c.want); !ok || got != c.d {
			t.Errorf("ParseDelay(%q) = %v, %v, want %v", c.want, got, ok, c.d)
		}
	}
	for _, s := range []string{"", "5", "60s", "0s", "-5s", "+5s", "5m0s", "1us", "1.5ms", "05s", "5s ", "1h0m", "999999999h", "2000000h"} {
		if d, ok := ParseDelay(s); ok {
			t.Errorf("ParseDelay(%q) = %v, want none", s, d)
		}
	}
}
