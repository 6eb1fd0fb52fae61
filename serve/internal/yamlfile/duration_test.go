package yamlfile_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

func TestDuration_TakesDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "180d": 180 * 24 * time.Hour, "0": 0, "-1s": -time.Second, "1h30m": 90 * time.Minute} {
		if got, err := yamlfile.Duration(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "1.5d", "-1d", "1y", "99999d", "soon"} {
		if got, err := yamlfile.Duration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
