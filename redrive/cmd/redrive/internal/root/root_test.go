package root_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestRoot_AWrongCommandLineIsAnErrorOfUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"topcs"}, []string{`redrive: unknown verb "topcs"; did you mean topics?`, "see redrive --help"}},
		{[]string{"completion"}, []string{"redrive: completion takes the name of a shell: bash, zsh, fish, powershell\nsee redrive completion --help\n"}},
		{[]string{"completion", "tcsh"}, []string{"redrive: completion takes the name of a shell: bash"}},
		{[]string{"topics", "x"}, []string{"redrive: this verb takes flags only", "see redrive topics --help"}},
		{[]string{"topics", "--nope"}, []string{"redrive: unknown flag: --nope"}},
		{[]string{"run", "x", "--rte", "5"}, []string{"redrive: unknown flag: --rte; did you mean --rate or --utc?\n"}},
		{[]string{"run", "x", "--calss", "a"}, []string{"redrive: unknown flag: --calss; did you mean --class?\n"}},
		{[]string{"list", "x", "--limit", "ten"}, []string{"redrive: --limit: \"ten\" is not a whole number, or is too large\n"}},
		{[]string{"run", "x", "--rate", "slow"}, []string{"redrive: --rate: \"slow\" is not a number of records a second, nor a share of more than 0% and at most 100%\n"}},
		{[]string{"run", "x", "--window", "5"}, []string{"redrive: --window: \"5\" is not a duration such as 30s, 5m or 1h30m\n"}},
		{[]string{"list", "x", "--all=perhaps"}, []string{"redrive: --all: \"perhaps\" is not true or false: a switch needs no value\n"}},
		{[]string{"topics", "-x"}, []string{"redrive: unknown shorthand flag: 'x' in -x\n"}},
		{[]string{"topics", "-o", "xml"}, []string{"choose table, json, jsonl"}},
		{[]string{"topics", "--color", "yes"}, []string{"choose auto, always, never"}},
		{[]string{"topics"}, []string{"redrive: no brokers are given"}},
		{[]string{"topics", "--brokers", "a:b", "--tls-cert", "x", "--sasl", "magic"}, []string{
			`redrive: --brokers: "a:b" is not host:port`, "  --tls-cert is given without its key", `  --sasl: "magic" is not a known mechanism`,
		}},
		{[]string{"show", "orders.dlq", "x", "--timeout", "soon", "--brokers", "a"}, []string{`redrive: "x" is not partition:offset`, `  --timeout: "soon" is not a duration`}},
		{[]string{"topics", "--sasl-password=" + roottest.Hunter}, []string{"a secret must not be a flag's value", "--sasl-password-file or SIDING_SASL_PASSWORD"}},
		{[]string{"topics", "--token", roottest.Hunter}, []string{"--sasl-token-file or SIDING_SASL_TOKEN"}},
	} {
		got := roottest.Invocation{}.Run(t, c.args...)
		for _, want := range c.want {
			roottest.Prints(t, got, cli.ExitUsage, "", want, c.args)
		}
		if strings.Contains(got.Stderr, "hunter") {
			t.Errorf("%q: a secret is in %s", c.args, got.Stderr)
		}
	}
}

func TestRoot_HelpAndVersionAreData(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"topics", "--help"}, {"help"}, {"help", "topics"}, {"help", "topcs"}, {"help", "completion", "zsh"}, {"version"}, {"completion", "bash"}} {
		if got := (roottest.Invocation{}).Run(t, args...); got.Code != cli.ExitDone || got.Stdout == "" || got.Stderr != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// The commands in the documentation and in the verbs' help have verbs and flags that are there.
func TestRoot_KnowsTheDocumentedCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, file := range append(files, "../../../../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, commandsIn(string(text))...)
	}
	if len(commands) < 10 {
		t.Errorf("the documentation has %d commands: %q", len(commands), commands)
	}
	for _, verb := range append(roottest.NewCommands().Commands(), roottest.NewCommands()) {
		commands = append(commands, commandsIn(verb.Example)...)
	}
	for _, command := range commands {
		if err := parse(roottest.NewCommands(), command); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// commandsIn finds the lines of a text that are commands: indented, as code is.
func commandsIn(text string) (commands []string) {
	for _, m := range regexp.MustCompile(`(?m)^\s{2,}(?:\$ |[A-Z_]+=\S+ )?redrive (.*?)(?: +# .*)?$`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "[") {
			commands = append(commands, m[1])
		}
	}
	return commands
}

// parse takes a command as the program would, and does not run it.
func parse(root *cobra.Command, command string) error {
	var args []string
	for _, arg := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(command, -1) {
		if arg == ">" || arg == "|" || arg == "<" {
			break
		}
		args = append(args, strings.Trim(arg, `'"`))
	}
	verb, args, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := verb.ParseFlags(args); err != nil {
		return err
	}
	return verb.ValidateArgs(verb.Flags().Args())
}

func TestMain(m *testing.M) { roottest.RunTests(m) }
