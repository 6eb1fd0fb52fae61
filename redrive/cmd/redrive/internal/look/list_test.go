package look_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestList_ShowsALetterALine(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, f := range output.Formats {
		// One partition at a time: those of two come as they are fetched.
		roottest.PrintsGolden(t, b.Redrive(t, "list", "orders.dlq", "--partition", "0", "--utc", "-o", f), "list."+f)
		roottest.PrintsGolden(t, b.Redrive(t, "list", "orders.dlq", "--partition", "1", "--all", "--utc", "-o", f), "list-foreign."+f)
	}
}

func TestList_HasTheOpenLettersOrAll(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "0:1 0:3 1:0 1:1 1:2"},
		{[]string{"--all"}, "0:0 0:1 0:2 0:3 1:0 1:1 1:2"},
		{[]string{"--class", "http.503"}, "0:1 0:3"},
		{[]string{"--all", "--class", "http.503", "--offset", "0:0-1"}, "0:0 0:1"},
		{[]string{"--where", `text == "foreign"`}, "1:2"},
		{[]string{"--reason", "terminal"}, ""},
	} {
		got := b.Redrive(t, append([]string{"list", "orders.dlq", "-o", "jsonl"}, c.args...)...)
		if found := strings.Join(roottest.Places(t, got), " "); got.Code != cli.ExitDone || found != c.want {
			t.Errorf("%q: %s, want %s; %+v", c.args, found, c.want, got)
		}
		if c.want == "" && !strings.Contains(got.Stderr, "no open letter of orders.dlq fits: redrive summary orders.dlq shows") {
			t.Errorf("%q: %s", c.args, got.Stderr)
		}
	}
}

// Page by page, each letter is shown once, and none that came after the first page.
func TestList_PagesAreOneList(t *testing.T) {
	t.Parallel()
	cursor := regexp.MustCompile(`continue with --cursor (\S+)`)
	for _, all := range [][]string{nil, {"--all"}, {"--partition", "0"}, {"--offset", "0:-1", "--all"}} {
		b := roottest.Aftermath(t)
		want := roottest.Places(t, b.Redrive(t, append([]string{"list", "orders.dlq", "-o", "jsonl"}, all...)...))
		var found, from []string
		for range 10 {
			got := b.Redrive(t, slices.Concat([]string{"list", "orders.dlq", "-o", "jsonl", "--limit", "2"}, all, from)...)
			page := roottest.Places(t, got)
			if len(page) > 2 || got.Code != cli.ExitDone {
				t.Fatalf("%q: %+v", from, got)
			}
			found = append(found, page...)
			next := cursor.FindStringSubmatch(got.Stderr)
			if next == nil {
				break
			}
			from = []string{"--cursor", next[1]}
			b.Produce(t, roottest.Letter("orders.dlq", 0, 0, headers.Meta{Class: "later"}))
		}
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("%q: %q, want %q", all, found, want)
		}
	}
}

// Where the cursor has passed all that the filters ask for, the list ends; it does not begin again.
func TestList_APageBehindTheLastOneIsEmpty(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, filter := range []string{"--partition=0", "--offset=0:0-2", "--class=http.503"} {
		got := b.Redrive(t, "list", "orders.dlq", filter, "--cursor", "v1/orders.dlq/0:4-4,1:0-3")
		roottest.Prints(t, got, cli.ExitDone, "", "", filter)
	}
}

func TestListing_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--limit", "-1"}, "--limit: -1 is negative"},
		{[]string{"--cursor", "x"}, "--cursor: "},
		{[]string{"--cursor", "v1/mail.dlq/0:1-2"}, "--cursor: it belongs to mail.dlq, not to orders.dlq"},
		{[]string{"--cursor", "v1/orders.dlq/0:1-"}, "--cursor: it has no end"},
		{[]string{"--cursor", "v1/orders.dlq/0:1-2", "--partition", "1"}, "--cursor: the filters choose none of its partitions"},
	} {
		got := b.Redrive(t, append([]string{"list", "orders.dlq"}, c.args...)...)
		roottest.Prints(t, got, cli.ExitUsage, "", c.want, c.args)
	}
}

func TestList_PrintsValues(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders.dlq", "orders.dlq.ledger")).Open(t)
	for _, value := range [][]byte{[]byte("{\n  \"sku\": \"x\"\n}"), []byte("line\n\x1b[2J"), {0xff, 0}, nil, {}, []byte(strings.Repeat("0123456789", 50))} {
		r := roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Message: "no rate"})
		r.Value = value
		b.Produce(t, r)
	}
	for _, f := range output.Formats {
		roottest.PrintsGolden(t, b.Redrive(t, "list", "orders.dlq", "--utc", "--values", "-o", f), "list-values."+f)
	}
	got := b.Redrive(t, "list", "orders.dlq", "--values", "--redact", "sku", "--limit", "1")
	roottest.Prints(t, got, cli.ExitDone, "\n  {\"sku\":\"[redacted]\"}", "more letters may follow")
}

// One key of 900 KB made every row of a list without a terminal as wide.
func TestList_CutsALongKey(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger")).Open(t)
	long := roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{Class: "tax", Group: "billing", Attempts: 1})
	long.Key = bytes.Repeat([]byte("k"), 100_000)
	b.Produce(t, long, roottest.Letter("orders.dlq", 0, time.Hour, headers.Meta{Class: "tax", Group: "billing", Attempts: 1}))
	got := b.Redrive(t, "list", "orders.dlq", "--all")
	if got.Code != cli.ExitDone || len(got.Stdout) > 3000 || !strings.Contains(got.Stdout, strings.Repeat("k", 400)+"…") {
		t.Errorf("%d bytes, exit code %d: %.300s", len(got.Stdout), got.Code, got.Stdout)
	}
	roottest.Prints(t, b.Redrive(t, "list", "orders.dlq", "--all", "-o", "json"), cli.ExitDone, string(long.Key), "")
}

func TestList_DiscardedShowsTheNotes(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	got := b.Redrive(t, "list", "orders.dlq", "--discarded")
	roottest.Prints(t, got, cli.ExitDone, "", "orders.dlq.ledger has no notes of discarded records: consumers write them if Policy.NoteDiscards is set")
	b.NoteDiscards(t, 6)
	for _, f := range output.Formats {
		got := b.Redrive(t, "list", "orders.dlq", "--discarded", "--utc", "--limit", "3", "-o", f)
		clitest.Golden(t, "list-discarded."+f, got.Stdout)
		roottest.Prints(t, got, cli.ExitDone, "orders/0/102", "more discarded records follow: --limit 0 lists all")
	}
	for _, c := range []struct {
		args, want string
	}{
		{"", "100 101 102 103 104 105"},
		{"--class sku.*", "100 101 103 104"},
		{"--class expired --attempts 3", "102 105"},
		{"--group audit", ""},
		{"--since 3h", "100 101 102"},
		{"--until 3h", "103 104 105"},
	} {
		var found []string
		got := b.Redrive(t, append([]string{"list", "orders.dlq", "--discarded", "-o", "jsonl"}, strings.Fields(c.args)...)...)
		for line := range strings.Lines(got.Stdout) {
			_, at, _ := strings.Cut(line, `"offset":`)
			at, _, _ = strings.Cut(at, ",")
			found = append(found, at)
		}
		if strings.Join(found, " ") != c.want || got.Code != cli.ExitDone {
			t.Errorf("%s: %s, want %s; %+v", c.args, found, c.want, got)
		}
		if c.want == "" && !strings.Contains(got.Stderr, "none fits") {
			t.Errorf("%s: %s", c.args, got.Stderr)
		}
	}
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Key: []byte("discarded/billing/orders/7"), Value: []byte("{")})
	roottest.Prints(t, b.Redrive(t, "list", "orders.dlq", "--discarded"), cli.ExitDone, "orders/0/100", `with key "discarded/billing/orders/7": it is not a note of a discarded record`)
	// They are no letters, and other verbs do not stumble over them.
	if got := b.Redrive(t, "summary", "orders.dlq"); got.Code != cli.ExitDone || strings.Contains(got.Stderr, "discarded/") {
		t.Errorf("summary: %+v", got)
	}
	for _, flag := range []string{"--all", "--key=k", "--where=true", "--cursor=v1/orders.dlq/0:1-2", "--fingerprint=0123456789abcdef", "--header=x", "--offset=0:1"} {
		got := b.Redrive(t, "list", "orders.dlq", "--discarded", flag)
		name, _, _ := strings.Cut(flag, "=")
		roottest.Prints(t, got, cli.ExitUsage, "", fmt.Sprintf("%s: it is for dead letters", name))
	}
}
