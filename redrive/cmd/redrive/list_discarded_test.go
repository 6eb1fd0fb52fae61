package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// discarded writes notes of discarded records, each an hour older than the one before.
func (b *broker) discarded(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		note := dlq.DiscardNote{
			Group: "billing", Offset: int64(100 + i), Original: headers.Position{Topic: "orders", Offset: int64(100 + i)},
			Class: []string{"sku.Unknown", "sku.Old", "expired"}[i%3], Attempts: 1 + i%3, At: clitest.Noon.Add(-time.Duration(i+1) * time.Hour),
		}
		b.produce(t, note.Record("orders.dlq.ledger"))
	}
}

func TestList_DiscardedShowsTheNotes(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	got := b.redrive(t, "list", "orders.dlq", "--discarded")
	prints(t, got, cli.ExitDone, "", "orders.dlq.ledger has no notes of discarded records: consumers write them if Policy.NoteDiscards is set")
	b.discarded(t, 6)
	for _, f := range output.Formats {
		got := b.redrive(t, "list", "orders.dlq", "--discarded", "--utc", "--limit", "3", "-o", f)
		clitest.Golden(t, "list-discarded."+f, got.stdout)
		prints(t, got, cli.ExitDone, "orders/0/102", "more discarded records follow: --limit 0 lists all")
	}
	for _, c := range []struct {
		args, want string
	}{
		{"", "100 101 102 103 104 105"},
		{"--class sku.*", "100 101 103 104"},
		{"--class expired --attempts 3", "102 105"},
		{"--group audit", ""},
		{"--since 3h", "100 101 102"},
		{"--until 3h", "103 104 105"},
	} {
		var found []string
		got := b.redrive(t, append([]string{"list", "orders.dlq", "--discarded", "-o", "jsonl"}, strings.Fields(c.args)...)...)
		for line := range strings.Lines(got.stdout) {
			_, at, _ := strings.Cut(line, `"offset":`)
			at, _, _ = strings.Cut(at, ",")
			found = append(found, at)
		}
		if strings.Join(found, " ") != c.want || got.code != cli.ExitDone {
			t.Errorf("%s: %s, want %s; %+v", c.args, found, c.want, got)
		}
		if c.want == "" && !strings.Contains(got.stderr, "none fits") {
			t.Errorf("%s: %s", c.args, got.stderr)
		}
	}
	b.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Key: []byte("discarded/billing/orders/7"), Value: []byte("{")})
	prints(t, b.redrive(t, "list", "orders.dlq", "--discarded"), cli.ExitDone, "orders/0/100", `with key "discarded/billing/orders/7": it is not a note of a discarded record`)
	// They are no letters, and other verbs do not stumble over them.
	if got := b.redrive(t, "summary", "orders.dlq"); got.code != cli.ExitDone || strings.Contains(got.stderr, "discarded/") {
		t.Errorf("summary: %+v", got)
	}
	for _, flag := range []string{"--all", "--key=k", "--where=true", "--cursor=v1/orders.dlq/0:1-2", "--fingerprint=0123456789abcdef", "--header=x", "--offset=0:1"} {
		got := b.redrive(t, "list", "orders.dlq", "--discarded", flag)
		name, _, _ := strings.Cut(flag, "=")
		prints(t, got, cli.ExitUsage, "", fmt.Sprintf("%s: it is for dead letters", name))
	}
}

func TestPrune_DeletesNotesByAge(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.discarded(t, 6)
	prints(t, b.redrive(t, "prune", "orders.dlq", "--yes", "-o", "json"), cli.ExitDone, `"discardNotes":null}`, "")
	prints(t, b.redrive(t, "prune", "orders.dlq", "--discarded-older-than", "0s"), cli.ExitUsage, "", "--discarded-older-than: 0s is not in the past: all notes would be deleted")
	prints(t, b.redrive(t, "prune", "orders.dlq", "--older-than", "1h", "--discarded-older-than", "3h"), cli.ExitRefused, "", "was not typed")
	prints(t, b.redrive(t, "prune", "orders.dlq", "--discarded-older-than", "3h", "-o", "json"), cli.ExitDone, `"discardNotes":3}`, "nothing of orders.dlq can be deleted")
	got := b.redrive(t, "list", "orders.dlq", "--discarded", "-o", "jsonl")
	if n := strings.Count(got.stdout, "\n"); n != 3 {
		t.Errorf("%d notes are left: %+v", n, got)
	}
}
