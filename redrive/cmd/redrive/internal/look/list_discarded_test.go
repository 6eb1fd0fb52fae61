package look_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestList_DiscardedShowsTheNotes(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	got := b.Redrive(t, "list", "orders.dlq", "--discarded")
	roottest.Prints(t, got, cli.ExitDone, "", "orders.dlq.ledger has no notes of discarded records: consumers write them if Policy.NoteDiscards is set")
	b.NoteDiscards(t, 6)
	for _, f := range output.Formats {
		got := b.Redrive(t, "list", "orders.dlq", "--discarded", "--utc", "--limit", "3", "-o", f)
		clitest.Golden(t, "list-discarded."+f, got.Stdout)
		roottest.Prints(t, got, cli.ExitDone, "orders/0/102", "more discarded records follow: --limit 0 lists all")
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
		got := b.Redrive(t, append([]string{"list", "orders.dlq", "--discarded", "-o", "jsonl"}, strings.Fields(c.args)...)...)
		for line := range strings.Lines(got.Stdout) {
			_, at, _ := strings.Cut(line, `"offset":`)
			at, _, _ = strings.Cut(at, ",")
			found = append(found, at)
		}
		if strings.Join(found, " ") != c.want || got.Code != cli.ExitDone {
			t.Errorf("%s: %s, want %s; %+v", c.args, found, c.want, got)
		}
		if c.want == "" && !strings.Contains(got.Stderr, "none fits") {
			t.Errorf("%s: %s", c.args, got.Stderr)
		}
	}
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Key: []byte("discarded/billing/orders/7"), Value: []byte("{")})
	roottest.Prints(t, b.Redrive(t, "list", "orders.dlq", "--discarded"), cli.ExitDone, "orders/0/100", `with key "discarded/billing/orders/7": it is not a note of a discarded record`)
	// They are no letters, and other verbs do not stumble over them.
	if got := b.Redrive(t, "summary", "orders.dlq"); got.Code != cli.ExitDone || strings.Contains(got.Stderr, "discarded/") {
		t.Errorf("summary: %+v", got)
	}
	for _, flag := range []string{"--all", "--key=k", "--where=true", "--cursor=v1/orders.dlq/0:1-2", "--fingerprint=0123456789abcdef", "--header=x", "--offset=0:1"} {
		got := b.Redrive(t, "list", "orders.dlq", "--discarded", flag)
		name, _, _ := strings.Cut(flag, "=")
		roottest.Prints(t, got, cli.ExitUsage, "", fmt.Sprintf("%s: it is for dead letters", name))
	}
}
