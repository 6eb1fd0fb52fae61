package duration_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/duration"
)

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", time.Minute: "1m", 70 * time.Second: "1m10s", 48 * time.Hour: "48h",
		10 * time.Hour: "10h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s",
	} {
		if got := duration.Short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
