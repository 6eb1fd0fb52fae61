package look_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestSummary_CountsOpenLettersByFailure(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, f := range output.Formats {
		roottest.PrintsGolden(t, b.Redrive(t, "summary", "orders.dlq", "-o", f), "summary."+f)
	}
	// A table of one group has no column for it.
	if got := b.Redrive(t, "summary", "orders.dlq", "--group", "mail"); strings.Contains(got.Stdout, "GROUPS") {
		t.Errorf("there is one group: %s", got.Stdout)
	}
	for _, c := range []struct {
		filter []string
		want   string
	}{
		{[]string{"--class", "decode"}, `"open":2,"pending":0,"resolved":0,`},
		{[]string{"--group", "billing", "--since", "90m"}, `"open":1,"pending":0,"resolved":0,`},
		{[]string{"--partition", "0"}, `"open":2,"pending":0,"resolved":1,"resolvedAs":{"discarded":1},"duplicates":1,`},
		{[]string{"--where", `class == "decode" && message startsWith "bad"`}, `"open":1,`},
		{[]string{"--class", "none"}, `"open":0,"pending":0,"resolved":0,"resolvedAs":{},"duplicates":0,"foreign":0,"malformed":0,"oldest":null,"failures":[],"classes":[],"groups":[],`},
	} {
		got := b.Redrive(t, append([]string{"summary", "orders.dlq", "-o", "json"}, c.filter...)...)
		if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, c.want) {
			t.Errorf("%q: %+v, want %s", c.filter, got, c.want)
		}
	}
}

// A mistyped class has no open letters, and neither has a class whose letters were all redriven.
// The first must not look like the second.
func TestSummary_ReportsThatNoLetterHasAClass(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for args, want := range map[string]string{
		"--class http.530,x":             "no open letter fits --class http.530,x: redrive summary orders.dlq shows the classes there are\n",
		"--class decode,none":            "",
		"--fingerprint 00000000000000ff": "",
	} {
		got := b.Redrive(t, append([]string{"summary", "orders.dlq"}, strings.Fields(args)...)...)
		if got.Code != cli.ExitDone || got.Stderr != want {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}

// A letter that was sent and has no outcome yet was counted as resolved, so an incident looked over
// while its records were still waiting in a retry topic.
func TestSummary_CountsPendingLettersApart(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 1, 0, dlq.Entry{State: dlq.Redriven, Run: "r-1", At: clitest.Noon})
	got := b.Redrive(t, "summary", "orders.dlq", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"open":4,"pending":1,"resolved":1,"resolvedAs":{"discarded":1},"duplicates":1,`, "")
	roottest.Prints(t, got, cli.ExitDone, `{"partition":1,"open":2,"pending":1,"resolved":0,`, "")
	roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq"), cli.ExitDone, "\nPENDING      1: redriven, without a recorded outcome; redrive runs orders.dlq names the run, status RUN shows what is known by now, plan records it\nRESOLVED     1: 1 discarded\n", "")
	roottest.Prints(t, b.Redrive(t, "topics", "-o", "json"), cli.ExitDone, `"open":4,"pending":1,"resolved":1,`, "")
}

func TestSummary_DrawsFailuresOverTime(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, ago := range []time.Duration{150 * time.Minute, 151 * time.Minute, 152 * time.Minute, 5 * 24 * time.Hour} {
		b.Produce(t, roottest.Letter("orders.dlq", 0, ago, headers.Meta{Class: "tax", Group: "billing"}))
	}
	for _, f := range output.Formats {
		roottest.PrintsGolden(t, b.Redrive(t, "summary", "orders.dlq", "--by", "30m", "--utc", "-o", f), "summary-by."+f)
	}
	for by, want := range map[string]string{"0": "--by: 0 is not a whole number of seconds", "-1h": "--by: -1h is not", "1500ms": "--by: 1500ms is not", "soon": `--by: "soon" is no duration`} {
		roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq", "--by="+by), cli.ExitUsage, "", want, by)
	}
}

func TestSummary_OfSeveralTopics(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "mail.dlq", 1, nil)
	b.Topic(t, "mail.dlq.ledger", 1, nil)
	b.Produce(t, roottest.Letter("mail.dlq", 0, time.Hour, headers.Meta{Class: "smtp"}))
	for _, f := range output.Formats {
		roottest.PrintsGolden(t, b.Redrive(t, "summary", "orders.dlq", "mail.dlq", "-o", f), "summary-several."+f)
		// of one partition: those of two come as they are fetched
		roottest.PrintsGolden(t, b.Redrive(t, "list", "orders.dlq", "mail.dlq", "--partition", "0", "--utc", "-o", f), "list-several."+f)
	}
	// One that can't be read does not hide the others.
	for _, verb := range []string{"summary", "list"} {
		got := b.Redrive(t, verb, "none.dlq", "mail.dlq", "-o", "json")
		roottest.Prints(t, got, cli.ExitError, `"topic":"mail.dlq"`, "redrive: topic none.dlq does not exist", verb)
		roottest.Prints(t, b.Redrive(t, verb, "mail.dlq", "mail.dlq"), cli.ExitUsage, "", "redrive: mail.dlq is given twice", verb)
	}
	// Nothing is done about a name that can be no dead-letter topic's: it may be that of another
	// command.
	for _, verb := range []string{"summary", "list", "plan"} {
		for _, f := range output.Formats {
			got := b.Redrive(t, verb, "mail.dlq", "nosuch", "orders", "-o", f)
			roottest.Exactly(t, got, cli.ExitUsage, "", "redrive: nosuch is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another)\n"+
				"  orders is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another); did you mean orders.dlq?\nsee redrive "+verb+" --help\n", verb, f)
		}
	}
	// A partition that one of them lacks is an error about that one: the other is shown.
	roottest.Prints(t, b.Redrive(t, "summary", "mail.dlq", "orders.dlq", "--partition", "1"), cli.ExitError, "TOPIC        orders.dlq", "redrive: mail.dlq has no partition 1: it has 1, from 0 on")
	roottest.Prints(t, b.Redrive(t, "summary", "mail.dlq", "--partition", "1"), cli.ExitUsage, "", "redrive: mail.dlq has no partition 1: it has 1, from 0 on")
	got := b.Redrive(t, "list", "orders.dlq", "mail.dlq", "--limit", "1")
	roottest.Prints(t, got, cli.ExitDone, "mail.dlq    0:0", "more letters of orders.dlq may follow: redrive list orders.dlq --cursor v1/orders.dlq/")
	roottest.Prints(t, b.Redrive(t, "list", "orders.dlq", "mail.dlq", "--cursor", "v1/orders.dlq/0:1-2"), cli.ExitUsage, "", "--cursor: it belongs to one topic")
}
