package root_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// A variable that is not set, as in --class "$X", must not choose all letters, nor delete without
// an archive. It holds for each flag that there is, and for those that are still to come.
func TestRefuseEmpty_AnEmptyValueIsAnErrorOfUsage(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	before := b.Hold(t, "orders.dlq")
	arguments := map[string][]string{
		"topics": nil, "version": nil, "demo": nil, "show": {"orders.dlq", "0:1"}, "import": {"orders.dlq", roottest.Save(t, "")},
		"status": {"orders.dlq/x"}, "resume": {"orders.dlq/x"}, "abort": {"orders.dlq/x"},
	}
	tried := 0
	for _, verb := range roottest.NewCommands().Commands() {
		if verb.Name() == "completion" || verb.Name() == "help" {
			continue
		}
		args, ok := arguments[verb.Name()]
		if !ok {
			args = []string{"orders.dlq"}
		}
		// What else would keep the verb from going on is given.
		for _, more := range []string{"why", "yes"} {
			if f := verb.Flags().Lookup(more); f != nil && f.Value.Type() == "bool" {
				args = append(args, "--"+more)
			} else if f != nil {
				args = append(args, "--"+more, "x")
			}
		}
		try := func(f *pflag.Flag, values ...string) {
			for _, value := range values {
				tried++
				got := b.Redrive(t, append(append([]string{verb.Name()}, args...), "--"+f.Name+"="+value)...)
				roottest.Prints(t, got, cli.ExitUsage, "", "--"+f.Name, verb.Name(), f.Name, value)
			}
		}
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "key": // a record's key may be empty
			case f.Value.Type() == "stringSlice":
				try(f, "", " ", ",", "a,")
			default:
				try(f, "", " ")
			}
		})
	}
	root := roottest.NewCommands()
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		tried++
		got := b.Redrive(t, "list", "orders.dlq", "--"+f.Name+"=")
		roottest.Prints(t, got, cli.ExitUsage, "", "--"+f.Name, f.Name)
	})
	if tried < 100 {
		t.Errorf("%d were tried: the flags are not found", tried)
	}
	if open := b.OpenLetters(t); open != "0:1 0:3 1:0 1:1 1:2" || len(b.Hold(t, "orders.dlq")[0]) != len(before[0]) {
		t.Errorf("something was done: open are %s", open)
	}
	// an empty key is one that a record may have
	roottest.Prints(t, b.Redrive(t, "list", "orders.dlq", "--key", ""), cli.ExitDone, "", "no open letter of orders.dlq fits")
}

// Help does not show that a list of flags begins empty.
func TestRefuseEmpty_HelpShowsNoEmptyDefaults(t *testing.T) {
	t.Parallel()
	root := roottest.NewCommands()
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if usages := cmd.Flags().FlagUsages() + cmd.PersistentFlags().FlagUsages(); strings.Contains(usages, "[]") || strings.Contains(usages, `""`) {
			t.Errorf("%s: %s", cmd.Name(), usages)
		}
	}
}

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
