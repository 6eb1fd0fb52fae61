package chaos

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a journal tells of lanes is what the log said.
func TestLaneLog_TellsTheJournal(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.journal")
	j, err := openJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(newLaneLog(j)).With("group", "billing")
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
	is, err := readJournal("a", name)
	if err != nil {
		t.Fatal(err)
	}
	var got []laneChange
	for _, c := range is.lanes {
		c.at = 0
		got = append(got, c)
	}
	want := []laneChange{
		{0, laneAssigned, tp{"bills", 0}},
		{0, laneAssigned, tp{"orders", 1}},
		{0, laneAssigned, tp{"orders", 2}},
		{0, laneHandedOver, tp{"bills", 0}},
		{0, laneEnded, tp{"orders", 1}},
		{0, laneRestarted, tp{"orders", 2}},
		{0, laneEnded, tp{"orders", 2}},
		{0, laneAssigned, everyLane},
		{0, laneEnded, everyLane},
	}
	if want := (suspects{0, tp{"orders.retry.2s", 4}, 2, 14}); len(is.suspects) != 1 || (suspects{0, is.suspects[0].feed, is.suspects[0].from, is.suspects[0].to}) != want {
		t.Errorf("the journal tells of suspects %v, want %v", is.suspects, want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the journal tells %v, want %v", got, want)
	}
}

// A line that is renamed would take its evidence away.
func TestLaneLog_KnowsLinesOfTheConsumer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
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
