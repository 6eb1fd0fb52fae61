package move_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestPrune_SparesOpenLetters(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	// behind an open one: it stays
	b.Record(t, 1, 1, dlq.Entry{State: dlq.Succeeded, At: clitest.Noon})
	before := b.OpenLetters(t)
	got := b.Redrive(t, "prune", "orders.dlq", "-o", "json", "--yes")
	roottest.Exactly(t, got, cli.ExitDone, `{"topic":"orders.dlq","deleted":1,"open":0,"pending":0,"archive":null,"discardNotes":null}`+"\n", "")
	b.WantOpen(t, before)
	held := b.Hold(t, "orders.dlq")
	if len(held[0]) != 3 || held[0][0].Offset != 1 || len(held[1]) != 3 {
		t.Errorf("it holds %v", held)
	}
	got = b.Redrive(t, "prune", "orders.dlq", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"deleted":0,`, "nothing of orders.dlq can be deleted")
}

// A colleague may reopen a letter while prune asks. It stays, and so do the letters outside of the
// question.
func TestPrune_SparesWhatWasReopenedMeanwhile(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	was := b.Hold(t, "orders.dlq")
	archive := filepath.Join(t.TempDir(), "archive.jsonl")
	for _, args := range [][]string{nil, {"--older-than", "1m"}, {"--archive", archive}} {
		b.Record(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon})
		i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "1\n"}
		if len(args) > 0 && args[0] == "--older-than" {
			i.Stdin = "7\n"
		}
		i.Typed = func() {
			roottest.Prints(t, b.Redrive(t, "reopen", "orders.dlq", "--offset", "0:0", "--why", "wanted after all", "--yes"), cli.ExitDone, "REOPENED  1", "")
		}
		got := i.Run(t, append([]string{"prune", "orders.dlq"}, args...)...)
		roottest.Prints(t, got, cli.ExitRefused, "", "nothing was deleted: ", args)
		roottest.Prints(t, got, cli.ExitRefused, "", "letters changed since they were counted: count them again", args)
		b.WantHeld(t, "orders.dlq", was)
	}
}

// The outcome of a pending letter may stay unknown. The letter may then be all that is left of the
// record.
func TestPrune_SparesPendingLettersAndNamesTheRemedy(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 0, 0, dlq.Entry{State: dlq.Redriven, Run: "r-1", At: clitest.Noon})
	got := b.Redrive(t, "prune", "orders.dlq", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `{"topic":"orders.dlq","deleted":0,"open":0,"pending":1,"archive":null,"discardNotes":null}`, "nothing of orders.dlq can be deleted")
	roottest.InOrder(t, got.Stderr, "nothing of orders.dlq can be deleted", "1 letter of orders.dlq without an outcome yet", "redrive runs orders.dlq", "status RUN", "--older-than")
}

func TestPrune_ByAgeAsksForOpenLettersAndArchives(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "again.dlq", 2, nil)
	was := b.Hold(t, "orders.dlq")
	file := filepath.Join(t.TempDir(), "archive.jsonl")
	env := map[string]string{"SIDING_BROKERS": b.Addr}
	// It deletes a resolved letter, an open one and its copy on partition 0, and the first letter
	// of partition 1.
	args := []string{"prune", "orders.dlq", "--older-than", "150m", "--archive", file, "-o", "json"}
	got := roottest.Invocation{Env: env, Stdin: "3\n"}.Run(t, args...)
	roottest.Prints(t, got, cli.ExitRefused, "", "4 letters of orders.dlq will be deleted, 3 of them open or without an outcome, the newest written at 2026-11-20T09:00:00Z, 1 of them discarded or compensated, which reopen could still open; type 4 to continue:")
	b.WantHeld(t, "orders.dlq", was)
	got = roottest.Invocation{Env: env}.Run(t, append(args, "--redact", "sku")...)
	roottest.Prints(t, got, cli.ExitRefused, "", "warning: the archive will have keys, values and headers byte for byte, for import: nothing of them is redacted\n4 letters of")
	got = roottest.Invocation{Env: env, Stdin: "4\n"}.Run(t, args...)
	if got.Code != cli.ExitDone || !strings.HasPrefix(got.Stdout, `{"topic":"orders.dlq","deleted":4,"open":3,"pending":0,"archive":"`) {
		t.Errorf("%+v", got)
	}
	b.WantOpen(t, "0:3 1:1 1:2")
	roottest.Prints(t, b.Redrive(t, "import", "again.dlq", file), cli.ExitDone, "IMPORTED  4\n", "")
	want := map[int32][]roottest.Content{0: was[0][:3], 1: was[1][:1]}
	b.WantHeld(t, "again.dlq", want)
}

func TestPrune_DeletesNothingWithoutItsArchive(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	was := b.Hold(t, "orders.dlq")
	taken := roottest.Save(t, "precious")
	absent := filepath.Join(t.TempDir(), "archive.jsonl")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--yes", "--archive", taken}, cli.ExitError, "nothing was deleted: archive: " + taken + " already exists and is never overwritten: choose another name"},
		{[]string{"--yes", "--archive", filepath.Join(absent, "x")}, cli.ExitError, "nothing was deleted: archive: "},
		{[]string{"--older-than", "0s"}, cli.ExitUsage, "--older-than: 0s is not in the past"},
		{[]string{"--older-than", "soon"}, cli.ExitUsage, `--older-than: "soon" is neither a duration`},
		{[]string{"--older-than", "1h"}, cli.ExitRefused, "was not typed"},
		{nil, cli.ExitRefused, "1 letter of orders.dlq will be deleted, 1 of them discarded or compensated, which reopen could still open; type 1 to continue:\nredrive: 1 was not typed, nothing was done: --yes skips the question"},
	} {
		got := b.Redrive(t, append([]string{"prune", "orders.dlq"}, c.args...)...)
		roottest.Prints(t, got, c.code, "", c.want, c.args)
	}
	if b, err := os.ReadFile(taken); string(b) != "precious" {
		t.Errorf("the file has %q, %v", b, err)
	}
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DeleteRecords}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--yes"), cli.ExitError, "", "redrive: not authorized: the user needs DELETE on topic orders.dlq")
	file := filepath.Join(t.TempDir(), "archive.jsonl")
	got := b.Redrive(t, "prune", "orders.dlq", "--yes", "--archive", file)
	if got.Code != cli.ExitError || !strings.Contains(got.Stderr, "the user needs DELETE on topic orders.dlq") || !strings.Contains(got.Stderr, "; the archive "+file+" exists and is complete") {
		t.Errorf("with an archive: %+v", got)
	}
	b.WantHeld(t, "orders.dlq", was)
}

// A copy without an entry is not deleted together with its letter. Prune records it and warns.
func TestPrune_LeavesACopyWithoutAnEntryToTheNext(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 0, 1, dlq.Entry{State: dlq.Succeeded, At: clitest.Noon})
	got := b.Redrive(t, "prune", "orders.dlq", "--yes", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"deleted":2,`, "1 letter of orders.dlq: copies of resolved letters, without an entry in the ledger")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--yes", "-o", "json"), cli.ExitDone, `"deleted":1,`, "")
}

// The limits are those of the server. What a dry run counts is what is then deleted, archived and
// recorded in the ledger.
func TestPrune_KeepsWhatIsWithinTheLimits(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "again.dlq", 2, nil)
	was := b.Hold(t, "orders.dlq")
	ledger := func() []ledgerrecord.Prune {
		prunes := ledgerrecord.Prunes{}
		err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", kgo.SeedBrokers(b.Addr)).Read(t.Context(), nil, func(n *dlq.LedgerRecord) {
			if _, err := prunes.Add(n.Run, n.Record.Value); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return prunes.Sorted()
	}
	got := b.Redrive(t, "prune", "orders.dlq", "--max-count", "1", "--dry-run", "-o", "json")
	roottest.Exactly(t, got, cli.ExitDone, `{"topic":"orders.dlq","wouldDelete":1,"open":0,"discarded":1,"pending":0,"held":5}`+"\n", "")
	got = b.Redrive(t, "prune", "orders.dlq", "--max-age", "1m", "--max-count", "1", "--open", "--dry-run")
	roottest.Prints(t, got, cli.ExitDone, "WOULD DELETE  7\n", "")
	got = b.Redrive(t, "prune", "orders.dlq", "--max-count", "7", "--yes")
	roottest.Prints(t, got, cli.ExitDone, "DELETED  0\n", "or is within the limits")
	b.WantHeld(t, "orders.dlq", was)
	if records := ledger(); len(records) > 0 {
		t.Errorf("the ledger has %+v", records)
	}
	folder := t.TempDir() + "/"
	got = b.Redrive(t, "prune", "orders.dlq", "--max-count", "1", "--open", "--yes", "--archive", folder, "--by", "ada", "--why", "OPS-1", "-o", "json")
	if got.Code != cli.ExitDone || !strings.HasPrefix(got.Stdout, `{"topic":"orders.dlq","deleted":6,`) || !strings.Contains(got.Stdout, `"archive":"`+folder+"orders.dlq/") {
		t.Errorf("%+v", got)
	}
	records := ledger()
	if len(records) != 1 || records[0].By != "ada" || records[0].Why != "OPS-1" || records[0].Letters != 6 || !strings.HasPrefix(records[0].Archive, folder) {
		t.Errorf("the ledger has %+v", records)
	}
	roottest.Prints(t, b.Redrive(t, "import", "again.dlq", folder), cli.ExitDone, "IMPORTED  6\n", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--open"}, "--open needs --max-age or --max-count"},
		{[]string{"--max-count", "-1"}, "--max-count: -1: the number of letters that stay"},
		{[]string{"--max-age", "0s"}, "--max-age: 0s is not in the past: all letters would be deleted"},
		{[]string{"--max-age", "30d", "--older-than", "30d"}, "--older-than cannot be combined"},
		{[]string{"--archive", "gs://letters"}, "--archive: \"gs://letters\": there is no storage gs://"},
	} {
		roottest.Prints(t, b.Redrive(t, append([]string{"prune", "orders.dlq", "--yes"}, c.args...)...), cli.ExitUsage, "", c.want, c.args)
	}
}

func TestMain(m *testing.M) { roottest.RunTests(m) }

func TestPrune_DeletesNotesByAge(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.NoteDiscards(t, 6)
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--yes", "-o", "json"), cli.ExitDone, `"discardNotes":null}`, "")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--discarded-older-than", "0s"), cli.ExitUsage, "", "--discarded-older-than: 0s is not in the past: all notes would be deleted")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--older-than", "1h", "--discarded-older-than", "3h"), cli.ExitRefused, "", "was not typed")
	roottest.Prints(t, b.Redrive(t, "prune", "orders.dlq", "--discarded-older-than", "3h", "-o", "json"), cli.ExitDone, `"discardNotes":3}`, "nothing of orders.dlq can be deleted")
	got := b.Redrive(t, "list", "orders.dlq", "--discarded", "-o", "jsonl")
	if n := strings.Count(got.Stdout, "\n"); n != 3 {
		t.Errorf("%d notes are left: %+v", n, got)
	}
}
