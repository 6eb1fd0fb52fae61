package main

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func TestSummary_CountsOpenLettersByFailure(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for _, f := range output.Formats {
		printsGolden(t, b.redrive(t, "summary", "orders.dlq", "-o", f), "summary."+f)
	}
	for _, c := range []struct {
		filter []string
		want   string
	}{
		{[]string{"--class", "decode"}, `"open":2,"pending":0,"resolved":0,`},
		{[]string{"--group", "billing", "--since", "90m"}, `"open":1,"pending":0,"resolved":0,`},
		{[]string{"--partition", "0"}, `"open":2,"pending":0,"resolved":1,"resolvedAs":{"discarded":1},"duplicates":1,`},
		{[]string{"--where", `class == "decode" && message startsWith "bad"`}, `"open":1,`},
		{[]string{"--class", "none"}, `"open":0,"pending":0,"resolved":0,"resolvedAs":{},"duplicates":0,"foreign":0,"malformed":0,"oldest":null,"failures":[],"groups":[],`},
	} {
		got := b.redrive(t, append([]string{"summary", "orders.dlq", "-o", "json"}, c.filter...)...)
		if got.code != exitDone || !strings.Contains(got.stdout, c.want) {
			t.Errorf("%q: %+v, want %s", c.filter, got, c.want)
		}
	}
}

// A mistyped class has no open letters, and neither has a class whose letters were all redriven.
// The first must not look like the second.
func TestSummary_SaysThatNoLetterHasAClass(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for args, want := range map[string]string{
		"--class http.530,x":             "no open letter fits --class http.530,x: redrive summary orders.dlq shows the classes there are\n",
		"--class decode,none":            "",
		"--fingerprint 00000000000000ff": "",
	} {
		got := b.redrive(t, append([]string{"summary", "orders.dlq"}, strings.Fields(args)...)...)
		if got.code != exitDone || got.stderr != want {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}

// A letter that was sent and has no outcome yet was counted as resolved, so an incident looked over
// while its records were still waiting in a retry topic.
func TestSummary_CountsPendingLettersApart(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.note(t, 1, 0, dlq.Entry{State: dlq.Redriven, Run: "r-1", At: noon})
	got := b.redrive(t, "summary", "orders.dlq", "-o", "json")
	prints(t, got, exitDone, `"open":4,"pending":1,"resolved":1,"resolvedAs":{"discarded":1},"duplicates":1,`, "")
	prints(t, got, exitDone, `{"partition":1,"open":2,"pending":1,"resolved":0,`, "")
	prints(t, b.redrive(t, "summary", "orders.dlq"), exitDone, "\nPENDING      1: redriven, the outcome is not known yet\nRESOLVED     1: 1 discarded\n", "")
	prints(t, b.redrive(t, "topics", "-o", "json"), exitDone, `"open":4,"pending":1,"resolved":1,`, "")
}
