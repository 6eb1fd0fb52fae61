package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

func TestCompleteFlags_OffersWhatThereIs(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		b := inMemory(t, kfake.SeedTopics(1, "orders", "orders.dlq", "audit.dlq"))
		folder := t.TempDir()
		if err := os.MkdirAll(filepath.Join(folder, "siding"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, connect.DefaultFile), []byte("profiles: {staging: {}, live: {}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"show", ""}, "audit.dlq\norders.dlq\n:4\n"},
			{[]string{"show", "orders.dlq", ""}, ":4\n"},
			{[]string{"list", "orders.dlq", "--reason", ""}, strings.Join(selection.Reasons, "\n") + "\n:4\n"},
			{[]string{"import", "orders.dlq", ""}, ":0\n"},
			{[]string{"prune", "orders.dlq", "--archive", ""}, ":0\n"},
			{[]string{"show", "x", "--as", ""}, "text\njson\nhex\n:4\n"},
			{[]string{"topics", "-o", ""}, "table\njson\njsonl\n:4\n"},
			{[]string{"topics", "--color", ""}, "auto\nalways\nnever\n:4\n"},
			{[]string{"topics", "--profile", ""}, "live\nstaging\n:4\n"},
			{[]string{"topics", "--sasl", ""}, "PLAIN\nSCRAM-SHA-256\nSCRAM-SHA-512\nOAUTHBEARER\n:4\n"},
			{[]string{"topics", "--tls-ca", ""}, ":0\n"},
			{[]string{"topics", ""}, ":4\n"},
			{[]string{"status", ""}, "audit.dlq/\norders.dlq/\n:6\n"},
			{[]string{"status", "orders.dlq/r", ""}, ":4\n"},
			{[]string{"status", "nothing.dlq/"}, ":36\n"},
		} {
			i := invocation{env: map[string]string{"SIDING_BROKERS": b.addr}, dial: b.dial, folder: folder}
			if got := i.run(t, append([]string{"__complete"}, c.args...)...); got.stdout != c.want || got.code != cli.ExitDone {
				t.Errorf("%q: %+v, want %q", c.args, got, c.want)
			}
		}
		// Nobody there: nothing is offered, and nothing is said.
		got := invocation{env: map[string]string{"SIDING_BROKERS": "127.0.0.1:1"}, dial: b.dial}.run(t, "__complete", "show", "")
		if got.stdout != ":4\n" || got.code != cli.ExitDone {
			t.Errorf("without a cluster: %+v", got)
		}
	})
}

// Of an id nobody types more than the topic.
func TestCompleteRun_OffersRunsTheNewestFirst(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		b := inMemory(t).aftermath(t)
		for _, run := range []string{
			`{"v":1,"id":"r-1","owner":"ada","state":"done","startedAt":"2026-11-20T10:00:00Z"}`,
			`{"v":1,"id":"r-2","owner":"ada","state":"sending","startedAt":"2026-11-20T11:00:00Z","stoppedAt":"2026-11-20T11:01:00Z"}`,
			`{"v":1,"id":"r-3","owner":"ada","state":"sending","startedAt":"2026-11-20T11:30:00Z","at":"2026-11-20T11:59:59Z"}`,
		} {
			b.produce(t, dlq.RunRecord("orders.dlq.ledger", run[13:16], []byte(run)))
		}
		for verb, want := range map[string]string{
			"status": "orders.dlq/r-3\tsending\norders.dlq/r-2\tstopped\norders.dlq/r-1\tdone\n:36\n",
			"resume": "orders.dlq/r-3\tsending\norders.dlq/r-2\tstopped\n:36\n",
			"abort":  "orders.dlq/r-3\tsending\norders.dlq/r-2\tstopped\n:36\n",
		} {
			if got := b.redrive(t, "__complete", verb, "orders.dlq/"); got.stdout != want || got.code != cli.ExitDone {
				t.Errorf("%s: %+v, want %q", verb, got, want)
			}
		}
	})
}
