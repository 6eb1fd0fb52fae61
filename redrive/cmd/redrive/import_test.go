package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

func TestImport_MakesTheExportedRecordsAgain(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.topic(t, "again.dlq", 2, nil)
	b.produce(t, &kgo.Record{Topic: "orders.dlq", Key: []byte{}, Value: []byte("\xff\x00"), Headers: []kgo.RecordHeader{{Key: "x"}, {Key: "x", Value: []byte{}}, {Key: "\xfe\x1b", Value: []byte("y")}}})
	got := b.redrive(t, "export", "orders.dlq", "--all")
	if got.code != cli.ExitDone || got.stderr != "" || strings.Count(got.stdout, "\n") != 8 || strings.Contains(got.stdout, "\x1b") {
		t.Fatalf("export: %+v", got)
	}
	got = b.redrive(t, "import", "again.dlq", save(t, got.stdout), "-o", "json")
	exactly(t, got, cli.ExitDone, `{"topic":"again.dlq","imported":8,"reopened":0,"copies":1}`+"\n", "")
	b.wantHeld(t, "again.dlq", b.hold(t, "orders.dlq"))
	// Imported into a topic that still has them, open letters become copies.
	before := b.openLetters(t)
	got = b.redrive(t, "export", "orders.dlq", "--group", "billing")
	if strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("export of open letters: %+v", got)
	}
	if got = b.redrive(t, "import", "orders.dlq", save(t, got.stdout)); got.code != cli.ExitDone || !strings.Contains(got.stdout, "COPIES    2: the topic holds their letters") || strings.Contains(got.stdout, "AGAIN") {
		t.Errorf("import: %+v", got)
	}
	// So do resolved letters, and they stay resolved.
	resolved := b.redrive(t, "export", "orders.dlq", "--all", "--offset", "0:0")
	if got = b.redrive(t, "import", "orders.dlq", save(t, resolved.stdout), "-o", "json"); got.code != cli.ExitDone || got.stdout != `{"topic":"orders.dlq","imported":1,"reopened":0,"copies":1}`+"\n" {
		t.Errorf("import: %+v", got)
	}
	b.wantOpen(t, before)
}

func TestImport_TakesNothingOfABrokenFile(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.topic(t, "again.dlq", 2, nil)
	b.topic(t, "narrow.dlq", 1, nil)
	whole := b.redrive(t, "export", "orders.dlq").stdout
	absent := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		topic, file string
		code        int
		want        string
	}{
		{"again.dlq", save(t, whole[:len(whole)-9]), cli.ExitError, ".jsonl: dlq: import into \"again.dlq\": nothing was written: line 5"},
		{"again.dlq", save(t, "no JSON\n"+whole), cli.ExitError, "nothing was written: line 1"},
		{"narrow.dlq", save(t, whole), cli.ExitError, "nothing was written: "},
		{"again.dlq", absent, cli.ExitUsage, "no such file"},
		{"again.dlq", t.TempDir(), cli.ExitUsage, "there is no archive"},
		{"orders", save(t, whole), cli.ExitUsage, "orders is not a dead-letter topic"},
		{"payments.dlq", save(t, whole), cli.ExitError, "topic payments.dlq does not exist"},
	} {
		got := b.redrive(t, "import", c.topic, c.file)
		if got.code != c.code || got.stdout != "" || !strings.Contains(got.stderr, c.want) || strings.HasPrefix(got.stderr, "redrive: topic again.dlq") {
			t.Errorf("%s: %+v, want %d and %q", c.topic, got, c.code, c.want)
		}
	}
	if held := len(b.hold(t, "again.dlq")) + len(b.hold(t, "narrow.dlq")); held != 0 {
		t.Errorf("%d partitions hold letters", held)
	}
}

// Import does not write a letter whose timestamp is so old that retention would delete it at once.
func TestImport_KeepsTimestampsWhereTheTopicDoes(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.topic(t, "kept.dlq", 2, map[string]string{"retention.ms": "-1"})
	b.topic(t, "short.dlq", 2, map[string]string{"retention.ms": "1"})
	file := save(t, strings.ReplaceAll(b.redrive(t, "export", "orders.dlq").stdout, `"timestamp":1795`, `"timestamp":1695`))
	prints(t, b.redrive(t, "import", "kept.dlq", file, "--keep-timestamps"), cli.ExitDone, "IMPORTED  5\n", "")
	prints(t, b.redrive(t, "show", "kept.dlq", "0:0", "-o", "json"), cli.ExitDone, `"appendedAt":"2023-`, "")
	got := b.redrive(t, "import", "short.dlq", file, "--keep-timestamps")
	if got.code != cli.ExitError || !strings.Contains(got.stderr, "nothing was written: ") || len(b.hold(t, "short.dlq")) != 0 {
		t.Errorf("%+v", got)
	}
}

// A run would redrive letters again that have succeeded, so import asks before it writes them.
func TestImport_AsksBeforeItReopensLetters(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.note(t, 0, 1, dlq.Entry{State: dlq.Succeeded, At: clitest.Noon})
	b.note(t, 0, 2, dlq.Entry{State: dlq.Duplicate, At: clitest.Noon})
	file := filepath.Join(t.TempDir(), "archive.jsonl")
	if got := b.redrive(t, "prune", "orders.dlq", "--yes", "--archive", file); got.code != cli.ExitDone || !strings.Contains(got.stdout, "DELETED  3\n") {
		t.Fatalf("%+v", got)
	}
	const open = "0:3 1:0 1:1 1:2"
	asks := file + " had an outcome (1 letter: discarded; 1 letter: succeeded) and will be open again, so a run would redrive them a second time; type 2 to continue:"
	env := map[string]string{"SIDING_BROKERS": b.addr}
	for _, typed := range []string{"", "3\n"} {
		got := invocation{env: env, stdin: typed}.run(t, "import", "orders.dlq", file)
		prints(t, got, cli.ExitRefused, "", "2 letters of "+asks, typed)
		b.wantOpen(t, open)
	}
	// Import asks nothing about a broken file, or about a topic whose ledger has no outcomes.
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.redrive(t, "import", "orders.dlq", save(t, string(archive)+"{")); got.code != cli.ExitError || strings.Contains(got.stderr, "outcome") {
		t.Errorf("a broken file: %+v", got)
	}
	b.topic(t, "again.dlq", 2, nil)
	prints(t, b.redrive(t, "import", "again.dlq", file), cli.ExitDone, "IMPORTED  3\n", "")
	got := invocation{env: env, stdin: "2\n"}.run(t, "import", "orders.dlq", file, "-o", "json")
	exactly(t, got, cli.ExitDone, `{"topic":"orders.dlq","imported":3,"reopened":2,"copies":1}`+"\n", "2 letters of "+asks+"\n")
	b.wantOpen(t, "0:3 0:4 0:5 1:0 1:1 1:2")
	// The letters are open now, so a second import asks nothing.
	exactly(t, b.redrive(t, "import", "orders.dlq", file, "-o", "json"), cli.ExitDone, `{"topic":"orders.dlq","imported":3,"reopened":0,"copies":3}`+"\n", "")
	b.wantOpen(t, "0:3 0:4 0:5 1:0 1:1 1:2")
}
