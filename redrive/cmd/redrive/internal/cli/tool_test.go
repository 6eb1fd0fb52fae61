package cli_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestTool_PrintsNoSecret(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", roottest.Hunter), kfake.Superuser("SCRAM-SHA-512", "me", roottest.Hunter))
	file := roottest.Save(t, roottest.Hunter+"\n")
	traces := []string{"hunter", base64.StdEncoding.EncodeToString([]byte("\x00me\x00" + roottest.Hunter))}
	for _, c := range []struct {
		args []string
		env  map[string]string
		code int
	}{
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "me", "--sasl-password-file", file}, nil, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "SCRAM-SHA-512", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "you"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER", "--sasl-token-file", file}, nil, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER"}, map[string]string{"SIDING_SASL_TOKEN": roottest.Hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "PLAIN"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter, "SIDING_SASL_TOKEN": roottest.Hunter}, cli.ExitUsage},
		{[]string{"topics", "-v", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitUsage},
		{[]string{"topics", "--help"}, map[string]string{"SIDING_SASL_PASSWORD": roottest.Hunter}, cli.ExitDone},
	} {
		env := map[string]string{"SIDING_BROKERS": b.Addr}
		for k, v := range c.env {
			env[k] = v
		}
		got := roottest.Invocation{Env: env}.Run(t, c.args...)
		if got.Code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, got.Code, c.code, got.Stderr)
		}
		for _, trace := range traces {
			if strings.Contains(got.Stdout+got.Stderr, trace) {
				t.Errorf("%q: the secret is in\n%s%s", c.args, got.Stdout, got.Stderr)
			}
		}
		if c.code == cli.ExitDone && len(c.args) > 2 && !strings.Contains(got.Stderr, "level=DEBUG") {
			t.Errorf("%q: -v logs nothing: %s", c.args, got.Stderr)
		}
	}
}

// A card number stood on a screen that an operator shared. This goes through every verb with a
// number that must be nowhere. It fails for a new verb that it does not know.
func TestTool_HidesRedactedPartsInEveryVerb(t *testing.T) {
	t.Parallel()
	const card = "4111111111111111"
	b := roottest.Aftermath(t)
	secret := roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{
		Class: "tax", Group: "billing", Attempts: 1, Message: "card " + card + " declined", Stack: "charge(" + card + ")", Fingerprint: "00000000000000dd",
		Original: headers.Position{Topic: "orders", Offset: 1, Timestamp: clitest.Noon},
		History:  []headers.Attempt{{Number: 1, Class: "tax", At: clitest.Noon, Message: "card, " + card}},
	})
	secret.Key = []byte("card-" + card)
	secret.Value = []byte(`{"customer":{"card":` + card + `},"note":"of ` + card + `","list":[{"card":"` + card + `"}]}`)
	secret.Headers = append(secret.Headers, kgo.RecordHeader{Key: "x-card", Value: []byte(card)}, kgo.RecordHeader{Key: "x-note", Value: []byte("of " + card)})
	text := roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Message: card})
	text.Value = []byte("card=" + card)
	b.Produce(t, secret, text)
	b.Produce(t, &kgo.Record{Topic: "orders", Key: []byte(card), Value: secret.Value}, &kgo.Record{Topic: "orders", Value: text.Value})
	// a refusal quotes the reason
	b.Record(t, 1, 1, dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada", Why: "refunded to " + card})
	folder := t.TempDir()
	config := filepath.Join(folder, "config.yaml")
	profile := "profile: p\nprofiles:\n  p:\n    brokers: [" + b.Addr + "]\n    redact: [customer.card, 'list[*].card']\n    redact-header: x-card\n    redact-pattern: ['\\d{13,19}']\n"
	if err := os.WriteFile(config, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(folder, "letters.jsonl")
	if err := os.WriteFile(archive, []byte(b.Redrive(t, "export", "orders.dlq", "--class", "tax").Stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	// of letters; a second line of a verb is for another output
	lines := map[string][]string{
		"topics":  {"topics", "topics --parked"},
		"summary": {"summary orders.dlq", "summary orders.dlq --where value.customer", "summary orders.dlq --where int(text)>0"},
		"list":    {"list orders.dlq", "list orders.dlq --all --where value.customer.card", "list orders.dlq --where value.note.x==1", "list orders.dlq --values"},
		"show":    {"show orders.dlq 0:4", "show orders.dlq 0:4 --as json", "show orders.dlq 0:4 --as hex", "show orders.dlq 0:5", "show orders.dlq 1:1", "show orders.dlq 0:4 --around 100"},
		"plan":    {"plan orders.dlq --class tax --target orders", "plan orders.dlq --class tax --target orders --patch {\"a\":1}", "plan orders.dlq --class tax --set-header x=" + card},
		"run":     {"run orders.dlq --class tax --target orders --patch {\"a\":1} --yes"},
		"watch":   {}, // has no end; see TestWatch_HidesWhatIsRedacted
		"doctor":  {"doctor orders.dlq"}, "consumers": {"consumers orders.dlq", "consumers billing"},
		"runs": {"runs orders.dlq"}, "status": {"status orders.dlq/x"}, "resume": {"resume orders.dlq/x"}, "abort": {"abort orders.dlq/x"},
		"import": {"import orders.dlq " + archive + " --yes"}, "prune": {"prune orders.dlq --yes"},
		"discard": {"discard orders.dlq --offset 1:1 --why x", "discard orders.dlq --class tax --why x", "discard orders.dlq --class tax --why x --yes"}, "reopen": {"reopen orders.dlq --class tax --why x --yes"},
		"export": {"export orders.dlq --decoded"}, // see TestExport_WarnsThatItRedactsNothing
		// The server shows nothing here; see TestRunServer_HidesWhatFlagsVariablesAndProfileHide.
		"serve": {},
		"demo":  {}, "version": {}, "completion": {}, "help": {},
	}
	var verbs []string
	for _, verb := range roottest.NewCommands().Commands() {
		verbs = append(verbs, verb.Name())
		if _, ok := lines[verb.Name()]; !ok {
			t.Errorf("%s is a verb that this test does not know", verb.Name())
		}
	}
	slices.SortStableFunc(verbs, func(a, b string) int { // those that change letters come last
		last := func(s string) int { return slices.Index([]string{"run", "import", "discard", "reopen", "prune"}, s) }
		return last(a) - last(b)
	})
	shown := 0
	for _, verb := range verbs {
		for _, line := range lines[verb] {
			for _, format := range []string{"table", "json", "jsonl"} {
				i := roottest.Invocation{Env: map[string]string{"SIDING_CONFIG": config}}
				got := i.Run(t, append(strings.Fields(line), "-o", format)...)
				if got.Code == cli.ExitUsage {
					t.Errorf("%s: %+v", line, got)
				}
				all := strings.ReplaceAll(got.Stdout+got.Stderr, "\n", "")
				// base64, hex
				for _, form := range []string{card, "NDExMTExMTExMTExMTExMQ", "34 31 31 31 31 31 31 31", "34313131313131"} {
					if strings.Contains(all, form) && !strings.Contains(line, card) {
						t.Errorf("%s -o %s shows it:\n%s\n%s", line, format, got.Stdout, got.Stderr)
					}
				}
				shown += strings.Count(all, "[redacted]")
			}
		}
	}
	if shown == 0 {
		t.Error("nothing was redacted, so this shows nothing")
	}
	i := roottest.Invocation{Env: map[string]string{"SIDING_CONFIG": config}}
	if got := i.Run(t, "show", "orders.dlq", "0:4", "--no-redact"); strings.Count(got.Stdout, card) < 5 {
		t.Errorf("--no-redact: %+v", got)
	}
}

// A flag adds to what the profile hides: to hide one more member must not show the others.
func TestTool_RedactionAddsUpOverFlagsVariablesAndProfile(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	r := roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{Class: "tax"})
	r.Value = []byte(`{"a":1,"b":2,"c":3,"d":4}`)
	b.Produce(t, r)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("profiles:\n  p:\n    redact: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_CONFIG": config, "SIDING_PROFILE": "p", "SIDING_REDACT": "b,typo"}}
	got := i.Run(t, "show", "orders.dlq", "0:4", "--redact", "value.c, nothing")
	roottest.Prints(t, got, cli.ExitDone, `{"a":"[redacted]","b":"[redacted]","c":"[redacted]","d":4}`, "warning: --redact nothing fits nothing in the 1 letter shown\n")
	if strings.Count(got.Stderr, "\n") != 1 { // a profile and a variable are for many topics
		t.Errorf("it warns %q", got.Stderr)
	}
	// An error of an expression quotes what it is about.
	got = i.Run(t, "list", "orders.dlq", "--where", "int(text) > 0", "--partition", "0")
	roottest.Prints(t, got, cli.ExitDone, "", "the first: orders.dlq/0/1 (the reason is hidden, since it may quote the letter: --no-redact shows it)")
	if strings.Contains(got.Stderr, "sku") {
		t.Errorf("%+v", got)
	}
	got = i.Run(t, "show", "orders.dlq", "0:4", "--redact", "a[", "--redact-pattern", "(")
	roottest.Prints(t, got, cli.ExitUsage, "", "redrive: --redact: \"a[\" at column 3: the bracket does not end\n  --redact-pattern: error parsing regexp")
}

// A broker that goes away while a verb reads must not keep it for ever.
func TestSession_ABrokerThatGoesAwayEndsAVerb(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_TIMEOUT": "1s"}, Stdin: "5\n"}
	i.Typed = b.Close
	began := time.Now()
	got := i.Run(t, "discard", "orders.dlq", "--why", "x")
	if took := time.Since(began); got.Code != cli.ExitError || got.Stdout != "" || took > 45*time.Second {
		t.Errorf("after %s: %+v", took, got)
	}
}

// An operator grants the permissions in the table in docs/operations.md. With exactly these the
// verbs work. With one of them missing a verb names it, and does nothing.
func TestSession_NeedsTheDocumentedPermissions(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	file := roottest.Save(t, roottest.Guarded(t, nil).As("admin").Run(t, "export", "orders.dlq").Stdout)
	for column, verbs := range [][][]string{
		{{"summary", "orders.dlq"}, {"list", "orders.dlq"}, {"show", "orders.dlq", "0:1"}, {"export", "orders.dlq"}, {"runs", "orders.dlq"}},
		{{"plan", "orders.dlq"}, {"run", "orders.dlq", "--yes", "--canary", "0", "--window", "0", "--ramp", "0", "--no-wait"}},
		{{"discard", "orders.dlq", "--why", "x", "--yes"}},
		{{"import", "orders.dlq", file, "--keep-timestamps"}},
		{{"prune", "orders.dlq", "--yes"}},
	} {
		permissions := roottest.DocumentedPermissions(t, 0)
		if column > 0 { // it looks first
			permissions = slices.Concat(permissions, roottest.DocumentedPermissions(t, column))
		}
		for _, verb := range verbs {
			t.Run(verb[0], func(t *testing.T) {
				t.Parallel()
				if got := roottest.Guarded(t, permissions).As("ann").Run(t, verb...); got.Code != cli.ExitDone {
					t.Errorf("with all permissions: %+v", got)
				}
				for i, missing := range permissions {
					b := roottest.Guarded(t, slices.Concat(permissions[:i], permissions[i+1:]))
					before := b.As("admin").Run(t, "export", "orders.dlq", "--all").Stdout
					got := b.As("ann").Run(t, verb...)
					op, on := strings.ToUpper(missing.Operation.String()), roottest.Kind(missing.Resource)+" "+missing.Name
					names := func(op string) bool {
						return strings.Contains(got.Stderr, "not authorized: the user needs "+op+" on "+on+": have it granted (kafka-acls.sh ")
					}
					switch {
					// runs reads the ledger only
					case on == "topic orders.dlq" && op == "READ" && verb[0] == "runs":
					// show prints the letter without the ledger
					case on == "topic orders.dlq.ledger" && verb[0] == "show" && names(op) && got.Code == cli.ExitDone:
					// a user who may not see the topic gets an error about DESCRIBE
					case got.Code != cli.ExitError || got.Stdout != "" || !names(op) && !names("DESCRIBE"):
						t.Errorf("without %s on %s: %+v", op, on, got)
					default:
						if after := b.As("admin").Run(t, "export", "orders.dlq", "--all").Stdout; after != before {
							t.Errorf("without %s on %s something was done", op, on)
						}
					}
				}
			})
		}
	}
}
