package move_test

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestPrune_DeletesNotesByAge(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.NoteDiscards(t, 6)
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--yes", "-o", "json"), cli.ExitDone, `"discardNotes":null}`, "")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--discarded-older-than", "0s"), cli.ExitUsage, "", "--discarded-older-than: 0s is not in the past: all notes would be deleted")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--older-than", "1h", "--discarded-older-than", "3h"), cli.ExitRefused, "", "was not typed")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--discarded-older-than", "3h", "-o", "json"), cli.ExitDone, `"discardNotes":3}`, "nothing of orders.dlq can be deleted")
	got := b.Redrive(t, "list", "orders.dlq", "--discarded", "-o", "jsonl")
	if n := strings.Count(got.Stdout, "\n"); n != 3 {
		t.Errorf("%d notes are left: %+v", n, got)
	}
}
