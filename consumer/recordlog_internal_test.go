package consumer

import (
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"github.com/sidingkafka/siding/consumer/internal/logline"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
)

// A hundred classes with errors of 5 MiB kept 500 MiB for as long as their storms lasted.
func TestRecordLog_KeepsOfATextWhatALineHas(t *testing.T) {
	t.Parallel()
	var g recordLog
	g.init(slog.New(slog.DiscardHandler))
	long := strings.Repeat("x", 5<<20)
	check := func(text string) {
		if len(text) <= logline.MaxText || len(text) > 2*logline.MaxText || unsafe.StringData(text) == unsafe.StringData(long) {
			t.Errorf("%d bytes of a text of %d are kept, or all", len(text), len(long))
		}
	}
	g.storms.Report = func(k recordKind, tally logthrottle.Tally[recordExample]) {
		check(k.why)
		check(tally.Last.error)
	}
	for range 2 {
		g.add(recordKind{event: eventFetch, why: long}, recordExample{error: long})
	}
	g.storms.Close()
}
