package main

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// aftermath is a dead-letter topic with letters of two groups, a copy, one that siding did not write, and one that was
// discarded: of 7 letters 5 are open.
func aftermath(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	b := newBroker(t, opts...).open(t)
	b.topic(t, "orders", 2, nil)
	b.topic(t, "orders.dlq", 2, map[string]string{"retention.ms": "1209600000"})
	b.topic(t, "orders.dlq.ledger", 2, map[string]string{"cleanup.policy": "compact"})
	failed := func(partition int32, ago time.Duration, offset int64, group, class, print, message string) *kgo.Record {
		return letter("orders.dlq", partition, ago, headers.Meta{
			Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: partition, Offset: offset, Timestamp: noon.Add(-ago)},
			Group:    group, Attempts: 3, Class: class, Fingerprint: print, Reason: headers.ReasonExhausted, Message: message,
		})
	}
	b.produce(t,
		failed(0, 5*time.Hour, 1, "billing", "http.503", "00000000000000aa", "gone already"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, time.Hour, 3, "billing", "http.503", "00000000000000aa", "timeout"),
		failed(1, 3*time.Hour, 1, "mail", "decode", "00000000000000bb", "bad JSON"),
		failed(1, 2*time.Hour, 2, "mail", "decode", "00000000000000cc", "no JSON"),
		&kgo.Record{Topic: "orders.dlq", Partition: 1, Timestamp: noon.Add(-time.Hour), Value: []byte("foreign")},
	)
	b.note(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: noon.Add(-time.Minute), By: "ada", Why: "paid\x1b[2J by hand"})
	return b
}

// note writes an entry about a letter of orders.dlq.
func (b *broker) note(t *testing.T, partition int32, offset int64, e dlq.Entry) {
	t.Helper()
	b.produce(t, e.Record("orders.dlq.ledger", partition, offset))
}

func TestSummaryCountsWhatIsOpenByWhatFailed(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for _, f := range output.Formats {
		got := b.redrive(t, "summary", "orders.dlq", "-o", f)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s: exit code %d, %s", f, got.code, got.stderr)
		}
		golden(t, "summary."+f, got.stdout)
		if strings.Contains(got.stdout, "\x1b") {
			t.Errorf("%s: a control character reaches the terminal: %q", f, got.stdout)
		}
	}
	for _, c := range []struct {
		filter []string
		want   string
	}{
		{[]string{"--class", "decode"}, `"open":2,"resolved":0,`},
		{[]string{"--group", "billing", "--since", "90m"}, `"open":1,"resolved":0,`},
		{[]string{"--partition", "0"}, `"open":2,"resolved":1,"duplicates":1,`},
		{[]string{"--where", `class == "decode" && message startsWith "bad"`}, `"open":1,`},
		{[]string{"--class", "none"}, `"open":0,"resolved":0,"duplicates":0,"foreign":0,"malformed":0,"oldest":null,"failures":[],"groups":[],`},
	} {
		got := b.redrive(t, append([]string{"summary", "orders.dlq", "-o", "json"}, c.filter...)...)
		if got.code != exitDone || !strings.Contains(got.stdout, c.want) {
			t.Errorf("%q: %+v, want %s", c.filter, got, c.want)
		}
	}
}

// What the ledger can't tell leaves letters open, and that is said.
func TestALedgerThatSaysLessIsAWarning(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("0"), Value: []byte("{")})
	if got := b.redrive(t, "summary", "orders.dlq", "-o", "json"); got.code != exitDone || !strings.Contains(got.stdout, `"open":6,`) ||
		!strings.Contains(got.stderr, "warning: orders.dlq.ledger: the entries about 1 letter can't be read, so these letters count as open") {
		t.Errorf("broken: %+v", got)
	}
	b.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("0"), Value: []byte(`{"v":9}`)})
	if got := b.redrive(t, "summary", "orders.dlq", "-o", "json"); got.code != exitDone || !strings.Contains(got.stdout, `"open":6,`) ||
		!strings.Contains(got.stderr, "a newer siding wrote it") {
		t.Errorf("newer: %+v", got)
	}
	if got := b.redrive(t, "summary", "orders.dlq", "-o", "json", "--ledger-name", "{topic}.fates"); got.code != exitDone || !strings.Contains(got.stdout, `"open":6,`) ||
		!strings.Contains(got.stderr, "orders.fates does not exist: all letters of orders.dlq count as open") {
		t.Errorf("missing: %+v", got)
	}
}

func TestVerbsRefuseATopicThatTheyCannotRead(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for _, verb := range readers {
		for _, c := range []struct {
			args []string
			code int
			want string
		}{
			{[]string{}, exitUsage, "TOPIC is missing: redrive " + verb[0] + " TOPIC"},
			{[]string{"orders.dlq", "--partition", "2"}, exitUsage, "orders.dlq has no partition 2: it has 2, from 0 on"},
			{[]string{"orders.dlq", "--reason", "bad luck", "--since", "x"}, exitUsage, "  --since: "},
		} {
			got := b.redrive(t, append(append([]string{}, verb...), c.args...)...)
			fails(t, got, c.code, c.want, c.args)
		}
	}
}

// readers are the verbs that take TOPIC and filters.
var readers = [][]string{{"summary"}, {"list"}, {"list", "--all"}, {"export"}, {"discard", "--why", "x", "--yes"}}

// A class that is mistyped has no open letters, and so has one of which all came back: the first
// must not look like the second.
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
