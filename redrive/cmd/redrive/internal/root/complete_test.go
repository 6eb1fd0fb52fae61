package root_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

func TestCompleteFlags_ListsWhatThereIs(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		b := roottest.InMemory(t, kfake.SeedTopics(1, "orders", "orders.dlq", "audit.dlq"))
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
			i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Dial: b.Dial, Folder: folder}
			if got := i.Run(t, append([]string{"__complete"}, c.args...)...); got.Stdout != c.want || got.Code != cli.ExitDone {
				t.Errorf("%q: %+v, want %q", c.args, got, c.want)
			}
		}
		// Without a broker nothing is completed, and nothing is printed.
		got := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": "127.0.0.1:1"}, Dial: b.Dial}.Run(t, "__complete", "show", "")
		if got.Stdout != ":4\n" || got.Code != cli.ExitDone {
			t.Errorf("without a cluster: %+v", got)
		}
	})
}
