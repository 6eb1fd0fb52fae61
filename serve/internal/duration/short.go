// Package duration writes durations for people.
package duration

import (
	"strings"
	"time"
)

// Short returns a duration without parts that are zero at its end, as in 48h.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
