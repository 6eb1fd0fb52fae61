package consumer

import (
	"log/slog"
	"slices"
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
		if len(k.why) > 512 || unsafe.StringData(k.why) == unsafe.StringData(long) {
			t.Errorf("%d bytes are kept of what the errors of a line have in common, or all", len(k.why))
		}
		check(tally.Last.error)
	}
	for range 2 {
		g.add(recordKind{event: eventFetch, why: long}, recordExample{error: long})
	}
	g.storms.Close()
}

// Each fetch that failed on another connection had a line of its own, until there were a hundred.
func TestRecordLog_HasOneLineForErrorsThatDifferByAValue(t *testing.T) {
	t.Parallel()
	var g recordLog
	g.init(slog.New(slog.DiscardHandler))
	var said []string
	g.storms.Report = func(_ recordKind, tally logthrottle.Tally[recordExample]) { said = append(said, tally.Last.error) }
	for _, why := range []string{
		"dial tcp 10.0.0.1:9092: refused", "dial tcp 10.0.0.2:9093: refused", "dial tcp 10.0.0.3:9092: timeout",
	} {
		g.add(recordKind{event: eventFetch, topic: "orders", why: why}, recordExample{offset: -1})
	}
	g.storms.Close()
	want := []string{"dial tcp 10.0.0.1:9092: refused", "dial tcp 10.0.0.3:9092: timeout", "dial tcp 10.0.0.2:9093: refused"}
	if !slices.Equal(said[:min(len(said), 3)], want) {
		t.Errorf("lines %q, want first %q", said, want)
	}
}
