package trace

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a journal has of lanes is what the log had.
func TestLaneLog_WritesToTheJournal(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.journal")
	j, err := OpenJournal(name)
	must(t, err)
	log := slog.New(NewLaneLog(j)).With("group", "billing")
	log.Info("siding: lanes assigned", "lanes", 3, "partitions", "bills/0 orders/1-2")
	log.Info("siding: lanes revoked", "took", "2ms", "cancelled", int64(0), "partitions", "bills/0")
	log.Info("siding: lanes revoked", "took", 2*time.Millisecond, "cancelled", int64(1), "partitions", "orders/1")
	log.Error("siding: the log was truncated; its lane restarts", "topic", "orders", "partition", int32(2), "truncated_to", 5)
	log.Warn(uncommittedLine, "lanes", 1)
	log.Info("siding: lanes revoked", "took", 2*time.Millisecond, "cancelled", int64(0), "partitions", "orders/2")
	log.Info("siding: lanes assigned", "lanes", 12, "partitions", "orders/0,2,4,6,8,10,12,14,16,18,and 2 more")
	log.Info("siding: lanes revoked", "took", "2ms", "cancelled", int64(0), "partitions", "orders/0,2,4,6,8,10,12,14,16,18,and 2 more")
	log.Info("siding: lanes assigned", "lanes", 0, "partitions", "")
	log.With("topic", "orders", "partition", int32(4)).Warn(suspectsLine, "feed", "orders.retry.2s", "deaths", 3, "from", int64(2), "to", int64(14))
	is, err := ReadJournal("a", name)
	must(t, err)
	var got []LaneChange
	for _, c := range is.Lanes {
		c.At = 0
		got = append(got, c)
	}
	want := []LaneChange{
		{0, LaneAssigned, TP{"bills", 0}},
		{0, LaneAssigned, TP{"orders", 1}},
		{0, LaneAssigned, TP{"orders", 2}},
		{0, LaneHandedOver, TP{"bills", 0}},
		{0, LaneEnded, TP{"orders", 1}},
		{0, LaneRestarted, TP{"orders", 2}},
		{0, LaneEnded, TP{"orders", 2}},
		{0, LaneAssigned, EveryLane},
		{0, LaneEnded, EveryLane},
	}
	if want := (Suspects{0, TP{"orders.retry.2s", 4}, 2, 14}); len(is.Suspects) != 1 || (Suspects{0, is.Suspects[0].Feed, is.Suspects[0].From, is.Suspects[0].To}) != want {
		t.Errorf("the journal has the suspects %v, want %v", is.Suspects, want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the journal has %v, want %v", got, want)
	}
}

// A line that is renamed would take its evidence away.
func TestLaneLog_KnowsLinesOfTheConsumer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/telemetry.md")
	must(t, err)
	known := []string{uncommittedLine, suspectsLine}
	for line := range laneLines {
		known = append(known, line)
	}
	for _, line := range known {
		if row := "`" + strings.TrimPrefix(line, "siding: ") + "`"; !strings.Contains(string(page), row) {
			t.Errorf("docs/telemetry.md does not have the line %s", row)
		}
	}
}
