package move_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestExport_OfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	roottest.Prints(t, b.Redrive(t, "export", "orders.dlq", "--class", "none"), cli.ExitDone, "", "no open letter of orders.dlq fits")
}

// An archive without a part of its letters would be none. So an export is byte for byte, also where
// the profile hides something, and warns of that. A redaction on the command line holds.
func TestExport_WarnsThatItRedactsNothing(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	plain := b.Redrive(t, "export", "orders.dlq", "--offset", "0:1")
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_REDACT": "sku"}, Dial: b.Dial}
	got := i.Run(t, "export", "orders.dlq", "--offset", "0:1")
	roottest.Exactly(t, got, cli.ExitDone, plain.Stdout, "warning: export writes keys, values and headers byte for byte, for import, and hides nothing: --redact on the command line hides, and so does --decoded\n")
}

// A copy for the tests of a service has what may be shown, in the form of an export.
func TestExport_RedactsByFlag(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t).Open(t)
	b.Topic(t, "orders.dlq", 1, nil)
	b.Topic(t, "orders.dlq.ledger", 1, nil)
	b.Produce(t, &kgo.Record{Topic: "orders.dlq", Key: []byte("7"), Value: []byte(`{"card":"4111","n":1}`), Headers: []kgo.RecordHeader{{Key: "iban", Value: []byte("DE00")}, {Key: "tenant", Value: []byte("x")}}})
	for flag, want := range map[string]string{
		"--redact=card":         `{"card":"[redacted]","n":1}`,
		"--redact-header=iban":  `{"card":"4111","n":1}`,
		"--redact-pattern=\\d+": `{"card":"[redacted]","n":"[redacted]"}`,
	} {
		got := b.Redrive(t, "export", "orders.dlq", flag)
		roottest.Prints(t, got, cli.ExitDone, `"redacted":true}`, "warning: import refuses these lines, since parts of the letters are hidden")
		roottest.Prints(t, b.Redrive(t, "import", "orders.dlq", roottest.Save(t, got.Stdout)), cli.ExitError, "", "line 1: not a letter any more: parts of it were redacted")
		for l, err := range dlq.ReadExport(strings.NewReader(got.Stdout)) {
			if err != nil || string(l.Record.Value) != want || !l.Redacted || (string(l.Record.Headers[0].Value) == "DE00") != (flag == "--redact=card") {
				t.Errorf("%s: %v, %+v", flag, err, l.Record)
			}
		}
	}
}

func TestExport_SamplesEachFingerprint(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t).Open(t)
	b.Topic(t, "orders.dlq", 1, nil)
	b.Topic(t, "orders.dlq.ledger", 1, nil)
	const sku, tax = "00000000000000aa", "00000000000000bb"
	for i, print := range []string{sku, sku, tax, sku, "", "", "", tax} {
		m := headers.Meta{Original: headers.Position{Topic: "orders", Offset: int64(i)}, Group: "g", Class: "c", Fingerprint: print, Reason: headers.ReasonTerminal, Attempts: 1}
		b.Produce(t, &kgo.Record{Topic: "orders.dlq", Headers: m.Append(nil)})
	}
	got := b.Redrive(t, "export", "orders.dlq", "--sample", "2")
	var offsets []int64
	for l, err := range dlq.ReadExport(strings.NewReader(got.Stdout)) {
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, l.Record.Offset)
	}
	if d := cmp.Diff([]int64{0, 1, 2, 4, 5, 7}, offsets); d != "" {
		t.Error(d)
	}
	roottest.Prints(t, b.Redrive(t, "export", "orders.dlq", "--sample", "-1"), cli.ExitUsage, "", "--sample: -1: letters of each fingerprint, at least 1, or 0 for all")
}

// jq could not look into an export, whose bytes are in base64.
func TestExport_DecodesForPrograms(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t).Open(t)
	// Its letters are as old as noon.
	b.Topic(t, "orders.dlq", 1, map[string]string{"retention.ms": "-1"})
	b.Topic(t, "orders.dlq.ledger", 1, nil)
	b.Produce(t,
		&kgo.Record{Topic: "orders.dlq", Timestamp: clitest.Noon, Key: []byte("7"), Value: []byte(`{"card":"4111","n":9007199254740993}`), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("b\u009b")}, {Key: "a"}}},
		&kgo.Record{Topic: "orders.dlq", Timestamp: clitest.Noon, Value: []byte("\xff")},
	)
	plain := b.Redrive(t, "export", "orders.dlq")
	got := b.Redrive(t, "export", "orders.dlq", "--decoded")
	lines := strings.SplitAfter(got.Stdout, "\n")
	wants := []string{
		`,"decoded":{"key":"7","keyEncoding":"text","value":{"card":"4111","n":9007199254740993},"encoding":"json","headers":[{"key":"a","value":"b\u009b","encoding":"text"},{"key":"a","value":null,"encoding":"text"}]}}` + "\n",
		`,"decoded":{"key":null,"keyEncoding":"text","value":"/w==","encoding":"base64","headers":[]}}` + "\n",
	}
	for i, line := range strings.SplitAfter(plain.Stdout, "\n")[:2] {
		if want := strings.TrimSuffix(line, "}\n") + wants[i]; got.Code != cli.ExitDone || lines[i] != want || !json.Valid([]byte(lines[i])) {
			t.Errorf("got\n%s\nwant\n%s", lines[i], want)
		}
	}
	// It is an export like any other.
	before := b.Hold(t, "orders.dlq")
	b.DeleteTo(t, "orders.dlq", 0, -1)
	roottest.Prints(t, b.Redrive(t, "import", "orders.dlq", roottest.Save(t, got.Stdout), "--keep-timestamps"), cli.ExitDone, "IMPORTED  2", "")
	after := b.Hold(t, "orders.dlq")
	for i := range after[0] {
		after[0][i].Offset -= 2
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	// Redacted it is none: parts of the letters are missing.
	got = b.Redrive(t, "export", "orders.dlq", "--decoded", "--redact", "card")
	want := `{"v":1,"topic":"orders.dlq","partition":0,"offset":2,"timestamp":1795176000000,"key":"Nw==","value":"eyJjYXJkIjoiW3JlZGFjdGVkXSIsIm4iOjkwMDcxOTkyNTQ3NDA5OTN9","headers":[{"key":"a","value":"YsKb"},{"key":"a","value":null}],"redacted":true,"decoded":{"key":"7","keyEncoding":"text","value":{"card":"[redacted]","n":9007199254740993},`
	roottest.Prints(t, got, cli.ExitDone, want, "warning: import refuses these lines")
	roottest.Prints(t, b.Redrive(t, "import", "orders.dlq", roottest.Save(t, got.Stdout)), cli.ExitError, "", "line 1: not a letter any more: parts of it were redacted when it was exported, so export it again without --redact")
}

// An archive has what stdout would have, compressed, and import takes it.
func TestExport_WritesAnArchive(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "again.dlq", 2, nil)
	file := filepath.Join(t.TempDir(), "letters.jsonl.gz")
	got := b.Redrive(t, "export", "orders.dlq", "--all", "--archive", file, "-o", "json")
	if got.Code != cli.ExitDone || got.Stderr != "" || !strings.HasPrefix(got.Stdout, `{"topic":"orders.dlq","exported":7,"archive":"`+file+`","sha256":"`) {
		t.Errorf("%+v", got)
	}
	roottest.Prints(t, b.Redrive(t, "import", "again.dlq", file), cli.ExitDone, "IMPORTED  7\n", "")
	b.WantHeld(t, "again.dlq", b.Hold(t, "orders.dlq"))
	roottest.Prints(t, b.Redrive(t, "export", "orders.dlq", "--archive", file), cli.ExitError, "", file+" already exists and is never overwritten")
	absent := filepath.Join(t.TempDir(), "none.jsonl")
	roottest.Prints(t, b.Redrive(t, "export", "orders.dlq", "--class", "none", "--archive", absent), cli.ExitDone, "", "no archive was written")
	if _, err := os.Stat(absent); err == nil {
		t.Error("there is an archive of no letters")
	}
	roottest.Prints(t, b.Redrive(t, "export", "orders.dlq", "--archive", "s3://"), cli.ExitUsage, "", "is not s3://bucket/folder/")
}
