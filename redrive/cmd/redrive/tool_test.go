package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

const hunter = "hunter2-hunter2"

func TestAWrongCommandLineEndsWithTheCodeForUsage(t *testing.T) {
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
		{[]string{"run", "x", "--rate", "slow"}, []string{"redrive: --rate: \"slow\" is not a number\n"}},
		{[]string{"run", "x", "--window", "5"}, []string{"redrive: --window: \"5\" is not a duration such as 30s, 5m or 1h30m\n"}},
		{[]string{"list", "x", "--all=perhaps"}, []string{"redrive: --all is a switch: give it without a value, or as --all=true or --all=false (got \"perhaps\")\n"}},
		{[]string{"topics", "-x"}, []string{"redrive: unknown shorthand flag: 'x' in -x\n"}},
		{[]string{"topics", "-o", "xml"}, []string{"choose table, json, jsonl"}},
		{[]string{"topics"}, []string{"redrive: no brokers are given"}},
		{[]string{"topics", "--brokers", "a:b", "--tls-cert", "x", "--sasl", "magic"}, []string{
			`redrive: --brokers: "a:b" is not host:port`, "  --tls-cert is given without its key", `  --sasl: "magic" is not a known mechanism`,
		}},
		{[]string{"show", "orders.dlq", "x", "--timeout", "soon", "--brokers", "a"}, []string{`redrive: "x" is not partition:offset`, `  --timeout: "soon" is not a duration`}},
		{[]string{"topics", "--sasl-password=" + hunter}, []string{"a secret is no flag's value", "--sasl-password-file or SIDING_SASL_PASSWORD"}},
		{[]string{"topics", "--token", hunter}, []string{"--sasl-token-file or SIDING_SASL_TOKEN"}},
	} {
		got := invocation{}.run(t, c.args...)
		if got.code != exitUsage || got.stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q; want %d and nothing", c.args, got.code, got.stdout, exitUsage)
		}
		for _, want := range c.want {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%q: stderr does not say %q:\n%s", c.args, want, got.stderr)
			}
		}
		if strings.Contains(got.stderr, "hunter") {
			t.Errorf("%q: a secret is in %s", c.args, got.stderr)
		}
	}
}

func TestHelpAndVersionAreData(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"topics", "--help"}, {"help"}, {"help", "topics"}, {"help", "topcs"}, {"help", "completion", "zsh"}, {"version"}, {"completion", "bash"}} {
		if got := (invocation{}).run(t, args...); got.code != exitDone || got.stdout == "" || got.stderr != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// Thirty flags in the order of the alphabet are none that one finds.
func TestHelpPutsFlagsAndVerbsUnderHeadings(t *testing.T) {
	t.Parallel()
	got := invocation{}.run(t, "run", "--help")
	inOrder(t, got.stdout,
		"Usage:\n  redrive run TOPIC [flags]\n", "\nExamples:\n", "\nWhich letters:\n", "--class", "--where", "\nWhere to:\n", "--target", "\nChanges to the records:\n", "--patch",
		"\nHow fast, and when to stop:\n", "--rate", "\nFor the ledger:\n", "--by", "--why", "\nConnection, names, output:\n", "--brokers",
	)
	inOrder(t, invocation{}.run(t).stdout, "\nSee what is there:\n  topics ", "\nRedrive:\n  plan ", "\nDiscard, keep, delete:\n  discard ", "\nOthers:\n  demo ", "\nFlags:\n")
}

// TestTheCommandsThatAreDocumentedExist parses the examples.
func TestEachVerbHasHelpWithExamples(t *testing.T) {
	t.Parallel()
	for _, verb := range newCommands().Commands() {
		own := verb.Name() != "completion" && verb.Name() != "help" // those are cobra's
		if own && (verb.Short == "" || verb.Long == "" || len(commandsIn(verb.Example)) != strings.Count(verb.Example, "\n")+1) {
			t.Errorf("%s has no short help, long help or examples that are commands", verb.Name())
		}
	}
}

func TestWhatTheUserMayNotDoIsNamed(t *testing.T) {
	t.Parallel()
	blind, half := guarded(t, nil), guarded(t, []kfake.ACL{aclOn("orders.dlq", kmsg.ACLOperationDescribe)})
	for _, c := range []struct {
		b    *broker
		args []string
		code int
		want string
	}{
		{blind, []string{"show", "orders.dlq", "0:0"}, exitError, "not authorized: the user needs DESCRIBE on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation DESCRIBE --topic orders.dlq)"},
		{half, []string{"show", "orders.dlq", "0:0"}, exitError, "not authorized: the user needs READ on topic orders.dlq"},
		{blind, []string{"topics"}, exitDone, "or this user may see none"},
		{half, []string{"topics"}, exitDone, "warning: not authorized: the user needs DESCRIBE_CONFIGS on topic orders.dlq"},
	} {
		got := c.b.as("ann").run(t, c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%q: exit code %d, %s; want %d and %q", c.args, got.code, got.stderr, c.code, c.want)
		}
	}
	if got := half.as("ann").run(t, "topics"); !strings.Contains(got.stdout, "orders.dlq") {
		t.Errorf("what could be found out is not shown: %+v", got)
	}
}

func TestNoSecretIsEverPrinted(t *testing.T) {
	t.Parallel()
	b := newBroker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", hunter), kfake.Superuser("SCRAM-SHA-512", "me", hunter))
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(hunter+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	traces := []string{"hunter", base64.StdEncoding.EncodeToString([]byte("\x00me\x00" + hunter))}
	for _, c := range []struct {
		args []string
		env  map[string]string
		code int
	}{
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "me", "--sasl-password-file", file}, nil, exitDone},
		{[]string{"topics", "-v", "--sasl", "SCRAM-SHA-512", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, exitDone},
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "you"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, exitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER", "--sasl-token-file", file}, nil, exitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER"}, map[string]string{"SIDING_SASL_TOKEN": hunter}, exitError},
		{[]string{"topics", "-v", "--sasl", "PLAIN"}, map[string]string{"SIDING_SASL_PASSWORD": hunter, "SIDING_SASL_TOKEN": hunter}, exitUsage},
		{[]string{"topics", "-v", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, exitUsage},
		{[]string{"topics", "--help"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, exitDone},
	} {
		env := map[string]string{"SIDING_BROKERS": b.addr}
		for k, v := range c.env {
			env[k] = v
		}
		got := invocation{env: env}.run(t, c.args...)
		if got.code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, got.code, c.code, got.stderr)
		}
		for _, trace := range traces {
			if strings.Contains(got.stdout+got.stderr, trace) {
				t.Errorf("%q: the secret is in\n%s%s", c.args, got.stdout, got.stderr)
			}
		}
		if c.code == exitDone && len(c.args) > 2 && !strings.Contains(got.stderr, "level=DEBUG") {
			t.Errorf("%q: -v logs nothing: %s", c.args, got.stderr)
		}
	}
}

func TestCompletionOffersWhatThereIs(t *testing.T) {
	t.Parallel()
	b := newBroker(t, kfake.SeedTopics(1, "orders", "orders.dlq", "audit.dlq"))
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
		{[]string{"topics", "--profile", ""}, "live\nstaging\n:4\n"},
		{[]string{"topics", "--sasl", ""}, "PLAIN\nSCRAM-SHA-256\nSCRAM-SHA-512\nOAUTHBEARER\n:4\n"},
		{[]string{"topics", "--tls-ca", ""}, ":0\n"},
		{[]string{"topics", ""}, ":4\n"},
		{[]string{"status", ""}, ":4\n"},
	} {
		i := invocation{env: map[string]string{"SIDING_BROKERS": b.addr}, folder: folder}
		if got := i.run(t, append([]string{"__complete"}, c.args...)...); got.stdout != c.want || got.code != exitDone {
			t.Errorf("%q: %+v, want %q", c.args, got, c.want)
		}
	}
	// Nobody there: nothing is offered, and nothing is said.
	got := invocation{env: map[string]string{"SIDING_BROKERS": "127.0.0.1:1"}}.run(t, "__complete", "show", "")
	if got.stdout != ":4\n" || got.code != exitDone {
		t.Errorf("without a cluster: %+v", got)
	}
}
