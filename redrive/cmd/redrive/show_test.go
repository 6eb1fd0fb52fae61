package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func TestShowTellsAllOfALetter(t *testing.T) {
	t.Parallel()
	b := newBroker(t).open(t)
	b.topic(t, "orders.dlq", 2, nil)
	at := noon.Add(-2 * time.Hour)
	full := letter("orders.dlq", 1, 2*time.Hour, headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 1, Offset: 7, Timestamp: at.Add(-time.Hour)},
		Group:    "billing", Attempts: 2, Class: "http.503", Fingerprint: "00000000000000aa", Reason: headers.ReasonExhausted,
		Message: "no route\n\x1b[31mto host", Stack: "main.handle\n\tmain.go:3",
		History: []headers.Attempt{{Number: 1, Class: "http.503", At: at}, {Number: 2, Class: "http.503", At: at}},
		Redrive: headers.Redrive{ID: "r-1", Count: 1, From: headers.Position{Topic: "orders.dlq", Partition: 1, Offset: 0}},
	})
	full.Value = []byte("{\"id\":9007199254740993,\"name\":\"\u009b2J\"}")
	foreign := &kgo.Record{Topic: "orders.dlq", Partition: 0, Timestamp: at, Headers: []kgo.RecordHeader{{Key: "x\x1b[2J", Value: []byte("\xff")}}}
	b.produce(t, foreign, full)
	for _, f := range output.Formats {
		for name, place := range map[string]string{"show": "1:0", "show-foreign": "0:0"} {
			for _, as := range output.Renderings {
				file := name + "-" + as + "." + f
				got := b.redrive(t, "show", "orders.dlq", place, "--utc", "--as", as, "-o", f)
				if got.code != exitDone || got.stderr != "" {
					t.Errorf("%s: exit code %d, %s", file, got.code, got.stderr)
				}
				golden(t, file, got.stdout)
				if strings.ContainsAny(got.stdout, "\x1b\u009b") || !utf8.ValidString(got.stdout) {
					t.Errorf("%s: a control character reaches the terminal: %q", file, got.stdout)
				}
				if f != string(output.Table) && !json.Valid([]byte(got.stdout)) {
					t.Errorf("%s: no JSON: %s", file, got.stdout)
				}
			}
		}
	}
}

func TestShowSaysWhyThereIsNoLetter(t *testing.T) {
	t.Parallel()
	b := newBroker(t).open(t)
	b.topic(t, "orders.dlq", 3, nil)
	b.topic(t, "orders", 1, nil)
	for range 3 {
		b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{}), letter("orders.dlq", 1, 0, headers.Meta{}))
	}
	b.deleteTo(t, "orders.dlq", 0, 2)
	b.deleteTo(t, "orders.dlq", 1, 3)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"orders.dlq", "0:1"}, exitError, "orders.dlq/0/1 is gone, retention took it: the partition holds 2 to 2"},
		{[]string{"orders.dlq", "0:3"}, exitError, "orders.dlq/0/3 is not there yet: the partition holds 2 to 2"},
		{[]string{"orders.dlq", "1:0"}, exitError, "partition 1 of orders.dlq holds nothing"},
		{[]string{"orders.dlq", "3:0"}, exitError, "orders.dlq has no partition 3: it has 3"},
		{[]string{"orders.dlq", "0"}, exitUsage, `"0" is not partition:offset, as 3:41`},
		{[]string{"orders.dlq", "-1:0"}, exitUsage, "unknown shorthand flag"},
		{[]string{"orders.dlq"}, exitUsage, "P:OFFSET is missing: redrive show TOPIC P:OFFSET"},
		{[]string{"orders.dlq", "0:1", "2"}, exitUsage, `["2"] is too much`},
		{[]string{"payments.dlq", "0:1"}, exitError, "topic payments.dlq does not exist: there are orders.dlq"},
		{[]string{"orders", "0:1"}, exitUsage, "orders is no dead-letter topic by the naming {topic}.dlq (--dlq-name gives another); did you mean orders.dlq?"},
		{[]string{"orders.retry.5s", "0:1"}, exitUsage, "did you mean orders.dlq?"},
		{[]string{"orders.dlq", "0:2", "--as", "xml"}, exitUsage, "choose text, json, hex"},
	} {
		got := b.redrive(t, append([]string{"show"}, c.args...)...)
		if got.code != c.code || got.stdout != "" || !strings.Contains(got.stderr, c.want) || !strings.HasPrefix(got.stderr, "redrive: ") {
			t.Errorf("show %q: exit code %d, stdout %q, stderr %q; want %d and %q", c.args, got.code, got.stdout, got.stderr, c.code, c.want)
		}
	}
}
