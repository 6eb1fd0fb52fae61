package consumer

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Each first start on a new cluster began with warnings: the group's coordinator and the retry
// topics were a moment old.
func TestConsumer_WarnsOnlyOfWhatLasts(t *testing.T) {
	virtual(t, func(t *testing.T) {
		for lasts, warned := range map[time.Duration]bool{4 * time.Second: false, 20 * time.Second: true} {
			var log bytes.Buffer
			c := unstarted(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func() {})
			began := time.Now()
			c.retry(t.Context(), "opening lanes", func() error {
				if time.Since(began) < lasts {
					return kerr.NotLeaderForPartition
				}
				return nil
			})
			if is := strings.Contains(log.String(), `level=WARN msg="siding: trying again"`); is != warned {
				t.Errorf("a step failed for %v, and a warning is in the log: %t", lasts, is)
			}
		}
	})
}
