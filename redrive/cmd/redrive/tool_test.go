package main

import (
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

func TestTool_PrintsNoSecret(t *testing.T) {
	t.Parallel()
	b := newBroker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", hunter), kfake.Superuser("SCRAM-SHA-512", "me", hunter))
	file := save(t, hunter+"\n")
	traces := []string{"hunter", base64.StdEncoding.EncodeToString([]byte("\x00me\x00" + hunter))}
	for _, c := range []struct {
		args []string
		env  map[string]string
		code int
	}{
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "me", "--sasl-password-file", file}, nil, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "SCRAM-SHA-512", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitDone},
		{[]string{"topics", "-v", "--sasl", "PLAIN", "--sasl-user", "you"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER", "--sasl-token-file", file}, nil, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "OAUTHBEARER"}, map[string]string{"SIDING_SASL_TOKEN": hunter}, cli.ExitError},
		{[]string{"topics", "-v", "--sasl", "PLAIN"}, map[string]string{"SIDING_SASL_PASSWORD": hunter, "SIDING_SASL_TOKEN": hunter}, cli.ExitUsage},
		{[]string{"topics", "-v", "--sasl-user", "me"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitUsage},
		{[]string{"topics", "--help"}, map[string]string{"SIDING_SASL_PASSWORD": hunter}, cli.ExitDone},
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
		if c.code == cli.ExitDone && len(c.args) > 2 && !strings.Contains(got.stderr, "level=DEBUG") {
			t.Errorf("%q: -v logs nothing: %s", c.args, got.stderr)
		}
	}
}

// A broker that is lost in mid-run has answered before: nothing of the connection is missing.
func TestWithoutGuess_DropsTheClientsGuess(t *testing.T) {
	t.Parallel()
	for _, guess := range []string{
		"often happens if the client is using TLS when the broker is not expecting it: is TLS misconfigured on the client or the broker?",
		"often happens when the broker requires TLS but the client is using plaintext: is TLS missing?",
		"often happens when SASL is required but not provided: is SASL missing?",
	} {
		text := "redrive: orders.dlq: read: broker closed the connection immediately after a request was issued, which " + guess + "; redrive resume goes on"
		if got, want := cli.WithoutGuess(text), "redrive: orders.dlq: read: the broker hung up at once; redrive resume goes on"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// The words are the client's own.
	if got := cli.WithoutGuess((&kgo.ErrFirstReadEOF{}).Error()); got != "the broker hung up at once" {
		t.Errorf("the client says %q", got)
	}
}

// A table that is too wide for its terminal does without some columns, and not without those that
// one acts by.
func TestTool_TablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 30)
	letter := &dlq.Letter{Record: &kgo.Record{Topic: "orders.dlq", Partition: 11, Offset: 1234567, Key: []byte("order-1234567")}, Meta: headers.Meta{
		Class: "payment.Declined", Reason: headers.ReasonExhausted, Group: "billing-service", Attempts: 12, FailedAt: clitest.Noon, Message: long,
	}}
	run := redrive.Outcome{Topic: "orders.dlq", ID: "20260102-150405-a1b2c3", State: redrive.Watching, By: "oncall", Why: long, Started: clitest.Noon, Ended: clitest.Noon}
	run.Counts = redrive.Counts{Selected: 123456, Sent: 123456, Succeeded: 123456, Failed: 123456, Pending: 123456}
	kept := 336 * time.Hour
	topic := topicFields(
		subject.Sibling{Topic: "payments-service.dlq", Partitions: 12}, false, nil,
		topicStats{total: 123456, recent: 123456, oldest: clitest.Noon.Add(-kept), retention: &kept},
		topicContents{123456, 123456, 123456, output.Ago(clitest.Noon), "payment.Declined", []string{"billing-service", "mail"}}, clitest.Noon, false,
	)
	for name, c := range map[string]struct {
		fields []output.Field
		needs  []string // in a terminal of 80 columns
		always []string // in one of 60, too
		shows  string   // whole, though there is something to be cut
	}{
		"list":                    {letterFields(letter), []string{"PLACE", "CLASS", "KEY", "MESSAGE"}, []string{"PLACE", "CLASS"}, "payment.Declined"},
		"runs":                    {runFields(run, clitest.Noon), []string{"RUN", "STATE", "FAILED", "PENDING", "WHY"}, []string{"RUN", "STATE", "WHY"}, run.ID},
		"summary":                 {failureFields(&dlq.Summary{})(failure("payment.Declined", long)), []string{"COUNT", "CLASS", "FINGERPRINT", "LAST", "SHOW", "SAMPLE"}, []string{"COUNT", "CLASS", "SHOW"}, "3649751aadbf4e23"},
		"summary of a long class": {failureFields(&dlq.Summary{})(failure("java.lang.IllegalStateException", long)), []string{"COUNT", "CLASS", "LAST", "SHOW", "SAMPLE"}, []string{"COUNT", "CLASS", "SHOW"}, "java.lang.IllegalStateException"},
		"summary of a longer one": {failureFields(&dlq.Summary{})(failure(strings.Repeat("com.example.", 10), long)), []string{"COUNT", "CLASS", "LAST", "SHOW", "SAMPLE"}, []string{"COUNT", "CLASS", "SHOW"}, "11:1234567"},
		"topics":                  {topic, []string{"TOPIC", "OPEN", "NEXT EXPIRY", "TOP CLASS"}, []string{"TOPIC", "OPEN", "NEXT EXPIRY"}, "payment.Declined"},
	} {
		for _, width := range []int{60, 80, 1000} {
			var data bytes.Buffer
			s := output.NewScreen(&data, io.Discard, func(string) string { return "" })
			s.Width, s.Look = width, output.Look{Now: func() time.Time { return clitest.Noon.Add(26*time.Hour + 7*time.Minute) }, Zone: time.UTC}
			list := s.List()
			if err := list.Row(c.fields...); err != nil {
				t.Fatal(err)
			}
			if err := list.Close(); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(data.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d wide, want %d at most: %s", name, n, width, line)
				}
			}
			if width > 60 && !strings.Contains(data.String(), c.shows) {
				t.Errorf("%s at %d: %s is gone: %s", name, width, c.shows, data.String())
			}
			title, _, _ := strings.Cut(data.String(), "\n")
			for _, column := range c.fields {
				needed := width == 1000 && column.Title != "" || width == 80 && slices.Contains(c.needs, column.Title) || slices.Contains(c.always, column.Title)
				if needed && !strings.Contains(title, column.Title) {
					t.Errorf("%s at %d: %s is gone: %s", name, width, column.Title, title)
				}
			}
		}
	}
}

// failure is one of a summary.
func failure(class, sample string) dlq.Failure {
	return dlq.Failure{
		Class: class, Fingerprint: "3649751aadbf4e23", Count: 123456, First: clitest.Noon, Last: clitest.Noon, Partition: 11, Offset: 1234567, Sample: sample,
	}
}
