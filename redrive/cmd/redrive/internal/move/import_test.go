package move_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestImport_MakesTheExportedRecordsAgain(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "again.dlq", 2, nil)
	b.Produce(t, &kgo.Record{Topic: "orders.dlq", Key: []byte{}, Value: []byte("\xff\x00"), Headers: []kgo.RecordHeader{{Key: "x"}, {Key: "x", Value: []byte{}}, {Key: "\xfe\x1b", Value: []byte("y")}}})
	got := b.Redrive(t, "export", "orders.dlq", "--all")
	if got.Code != cli.ExitDone || got.Stderr != "" || strings.Count(got.Stdout, "\n") != 8 || strings.Contains(got.Stdout, "\x1b") {
		t.Fatalf("export: %+v", got)
	}
	got = b.Redrive(t, "import", "again.dlq", roottest.Save(t, got.Stdout), "-o", "json")
	roottest.Exactly(t, got, cli.ExitDone, `{"topic":"again.dlq","imported":8,"reopened":0,"copies":1}`+"\n", "")
	b.WantHeld(t, "again.dlq", b.Hold(t, "orders.dlq"))
	// Imported into a topic that still has them, open letters become copies.
	before := b.OpenLetters(t)
	got = b.Redrive(t, "export", "orders.dlq", "--group", "billing")
	if strings.Count(got.Stdout, "\n") != 2 {
		t.Errorf("export of open letters: %+v", got)
	}
	if got = b.Redrive(t, "import", "orders.dlq", roottest.Save(t, got.Stdout)); got.Code != cli.ExitDone || !strings.Contains(got.Stdout, "COPIES    2: the topic holds their letters") || strings.Contains(got.Stdout, "AGAIN") {
		t.Errorf("import: %+v", got)
	}
	// So do resolved letters, and they stay resolved.
	resolved := b.Redrive(t, "export", "orders.dlq", "--all", "--offset", "0:0")
	if got = b.Redrive(t, "import", "orders.dlq", roottest.Save(t, resolved.Stdout), "-o", "json"); got.Code != cli.ExitDone || got.Stdout != `{"topic":"orders.dlq","imported":1,"reopened":0,"copies":1}`+"\n" {
		t.Errorf("import: %+v", got)
	}
	b.WantOpen(t, before)
}

func TestImport_TakesNothingOfABrokenFile(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "again.dlq", 2, nil)
	b.Topic(t, "narrow.dlq", 1, nil)
	whole := b.Redrive(t, "export", "orders.dlq").Stdout
	absent := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		topic, file string
		code        int
		want        string
	}{
		{"again.dlq", roottest.Save(t, whole[:len(whole)-9]), cli.ExitError, ".jsonl: dlq: import into \"again.dlq\": nothing was written: line 5"},
		{"again.dlq", roottest.Save(t, "no JSON\n"+whole), cli.ExitError, "nothing was written: line 1"},
		{"narrow.dlq", roottest.Save(t, whole), cli.ExitError, "nothing was written: "},
		{"again.dlq", absent, cli.ExitUsage, "no such file"},
		{"again.dlq", t.TempDir(), cli.ExitUsage, "there is no archive"},
		{"orders", roottest.Save(t, whole), cli.ExitUsage, "orders is not a dead-letter topic"},
		{"payments.dlq", roottest.Save(t, whole), cli.ExitError, "topic payments.dlq does not exist"},
	} {
		got := b.Redrive(t, "import", c.topic, c.file)
		if got.Code != c.code || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) || strings.HasPrefix(got.Stderr, "redrive: topic again.dlq") {
			t.Errorf("%s: %+v, want %d and %q", c.topic, got, c.code, c.want)
		}
	}
	if held := len(b.Hold(t, "again.dlq")) + len(b.Hold(t, "narrow.dlq")); held != 0 {
		t.Errorf("%d partitions hold letters", held)
	}
}

// Import does not write a letter whose timestamp is so old that retention would delete it at once.
func TestImport_KeepsTimestampsWhereTheTopicDoes(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "kept.dlq", 2, map[string]string{"retention.ms": "-1"})
	b.Topic(t, "short.dlq", 2, map[string]string{"retention.ms": "1"})
	file := roottest.Save(t, strings.ReplaceAll(b.Redrive(t, "export", "orders.dlq").Stdout, `"timestamp":1795`, `"timestamp":1695`))
	roottest.Prints(t, b.Redrive(t, "import", "kept.dlq", file, "--keep-timestamps"), cli.ExitDone, "IMPORTED  5\n", "")
	roottest.Prints(t, b.Redrive(t, "show", "kept.dlq", "0:0", "-o", "json"), cli.ExitDone, `"appendedAt":"2023-`, "")
	got := b.Redrive(t, "import", "short.dlq", file, "--keep-timestamps")
	if got.Code != cli.ExitError || !strings.Contains(got.Stderr, "nothing was written: ") || len(b.Hold(t, "short.dlq")) != 0 {
		t.Errorf("%+v", got)
	}
}

// A run would redrive letters again that have succeeded, so import asks before it writes them.
func TestImport_AsksBeforeItReopensLetters(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 0, 1, dlq.Entry{State: dlq.Succeeded, At: clitest.Noon})
	b.Record(t, 0, 2, dlq.Entry{State: dlq.Duplicate, At: clitest.Noon})
	file := filepath.Join(t.TempDir(), "archive.jsonl")
	if got := b.Redrive(t, "prune", "orders.dlq", "--yes", "--archive", file); got.Code != cli.ExitDone || !strings.Contains(got.Stdout, "DELETED  3\n") {
		t.Fatalf("%+v", got)
	}
	const open = "0:3 1:0 1:1 1:2"
	asks := file + " had an outcome (1 letter: discarded; 1 letter: succeeded) and will be open again, so a run would redrive them a second time; type 2 to continue:"
	env := map[string]string{"SIDING_BROKERS": b.Addr}
	for _, typed := range []string{"", "3\n"} {
		got := roottest.Invocation{Env: env, Stdin: typed}.Run(t, "import", "orders.dlq", file)
		roottest.Prints(t, got, cli.ExitRefused, "", "2 letters of "+asks, typed)
		b.WantOpen(t, open)
	}
	// Import asks nothing about a broken file, or about a topic whose ledger has no outcomes.
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Redrive(t, "import", "orders.dlq", roottest.Save(t, string(archive)+"{")); got.Code != cli.ExitError || strings.Contains(got.Stderr, "outcome") {
		t.Errorf("a broken file: %+v", got)
	}
	b.Topic(t, "again.dlq", 2, nil)
	roottest.Prints(t, b.Redrive(t, "import", "again.dlq", file), cli.ExitDone, "IMPORTED  3\n", "")
	got := roottest.Invocation{Env: env, Stdin: "2\n"}.Run(t, "import", "orders.dlq", file, "-o", "json")
	roottest.Exactly(t, got, cli.ExitDone, `{"topic":"orders.dlq","imported":3,"reopened":2,"copies":1}`+"\n", "2 letters of "+asks+"\n")
	b.WantOpen(t, "0:3 0:4 0:5 1:0 1:1 1:2")
	// The letters are open now, so a second import asks nothing.
	roottest.Exactly(t, b.Redrive(t, "import", "orders.dlq", file, "-o", "json"), cli.ExitDone, `{"topic":"orders.dlq","imported":3,"reopened":0,"copies":3}`+"\n", "")
	b.WantOpen(t, "0:3 0:4 0:5 1:0 1:1 1:2")
}
