package demo_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The night of docs/redrive.md is 22,000 dead letters at 02:10 UTC, in virtual time. The page has
// the commands; the test runs them and compares what they print. With -update it writes that into
// the page.
func TestIncident_TheDocumentedNight(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	const file = "../../../../../docs/redrive.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), nightBegins)
	played, after, ends := strings.Cut(rest, nightEnds)
	if !ok || !ends {
		t.Fatalf("%s has no night", file)
	}
	bugs := []demo.Bug{
		{Class: "tax.TableMiss", Message: "no tax rate for region", Records: 14_000},
		{Class: "payment.gateway.Timeout", Message: "the bank did not answer in time", Records: 6_000, Retried: true},
		{Class: "payment.Declined", Message: "the bank said no", Records: 1_700},
		{Class: "decode", Message: "invalid character '<' looking for beginning of value", Records: 300},
	}
	var ran string
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)))
		n := roottest.NewNight(t, bugs...)
		n.Begin()
		ran = n.Play(played)
	})
	switch diff := cmp.Diff(loose(played), loose(ran)); {
	case diff == "":
	case !*clitest.Update:
		t.Errorf("%s differs from what the commands print (-page +commands); go test ./redrive/cmd/redrive/internal/demo -run TheDocumentedNight -update writes it:\n%s", file, diff)
	case !t.Failed():
		if err := os.WriteFile(file, []byte(before+nightBegins+ran+nightEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loose replaces what differs from night to night: which of many letters of one instant is a
// sample, the counts that a run reports at an instant at which it sends, and the last second of
// what took minutes.
func loose(text string) string {
	for _, varies := range []string{`\d+:\d+ +(the bank did not)`, `\d+ (sent at) \d+`, `\d+ (succeeded,) \d+`, `\d+(s ago|s left)`, `(\d{8}-\d{4})\d\d(?:-0000)`} {
		text = regexp.MustCompile(varies).ReplaceAllString(text, "N $1 N")
	}
	return text
}

const (
	nightBegins = "<!-- night: begin; go test ./redrive/cmd/redrive/internal/demo -run TheDocumentedNight -update writes the outputs -->\n"
	nightEnds   = "<!-- night: end -->\n"
)
