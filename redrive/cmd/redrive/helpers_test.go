package main

// Runs the program on a broker or an incident, and checks what it printed.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// result is the output of a command and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

// invocation is how a command is started.
type invocation struct {
	env    map[string]string
	dial   func(ctx context.Context, network, host string) (net.Conn, error) // nil is TCP
	listen func(network, address string) (net.Listener, error)               // of the demo's broker
	stdin  string
	typed  func() // before stdin is read
	now    func() time.Time
	heard  func(words string) // each time that something is written to stderr
	folder string             // of configuration
	full   bool               // stdout takes nothing
}

func (i invocation) run(t *testing.T, args ...string) result {
	t.Helper()
	return i.in(t.Context(), t, args...)
}

func (i invocation) in(ctx context.Context, t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if i.now == nil {
		i.now = func() time.Time { return clitest.Noon }
	}
	p := cli.Process{
		Stdin: typist{strings.NewReader(i.stdin), i.typed}, Stdout: &stdout, Stderr: listener{&stderr, i.heard},
		Env:    connect.Environment{Getenv: func(k string) string { return i.env[k] }, Folder: i.folder, Dial: i.dial},
		Listen: i.listen, Now: i.now, User: "oncall",
	}
	if i.full {
		p.Stdout = fullDisk{}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	code := Run(ctx, p, args)
	return result{stdout.String(), stderr.String(), code}
}

// fullDisk is a file on a disk without space.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// listener calls heard with each text that is written.
type listener struct {
	io.Writer
	heard func(string)
}

func (l listener) Write(p []byte) (int, error) {
	if l.heard != nil {
		l.heard(string(p))
	}
	return l.Writer.Write(p)
}

// typist calls before when the command reads the operator's answer.
type typist struct {
	io.Reader
	before func()
}

func (t typist) Read(p []byte) (int, error) {
	if t.before != nil {
		t.before()
	}
	return t.Reader.Read(p)
}

// redrive runs a command on the broker.
func (b *broker) redrive(t *testing.T, args ...string) result {
	t.Helper()
	return invocation{env: map[string]string{"SIDING_BROKERS": b.addr}, dial: b.dial}.run(t, args...)
}

// prints checks a command's exit code, and that it printed the given texts on stdout and on stderr.
// Where a text is empty, the command must have printed nothing.
func prints(t *testing.T, got result, code int, stdout, stderr string, about ...any) {
	t.Helper()
	lacks := func(text, want string) bool { return !strings.Contains(text, want) || want == "" && text != "" }
	if got.code != code || lacks(got.stdout, stdout) || lacks(got.stderr, stderr) {
		t.Errorf("%q: %+v, want exit code %d, %q and %q", about, got, code, stdout, stderr)
	}
}

// printsGolden checks that a command is done and printed the text of the golden file, without a
// control character.
func printsGolden(t *testing.T, got result, name string) {
	t.Helper()
	if got.code != cli.ExitDone || got.stderr != "" || strings.ContainsAny(got.stdout, "\x1b\u009b") || !utf8.ValidString(got.stdout) {
		t.Errorf("%s: %+v", name, got)
	}
	clitest.Golden(t, name, got.stdout)
}

// exactly checks a command's exit code, and that it printed these texts and no other.
func exactly(t *testing.T, got result, code int, stdout, stderr string, about ...any) {
	t.Helper()
	if want := (result{stdout, stderr, code}); got != want {
		t.Errorf("%q: %+v, want %+v", about, got, want)
	}
}

// newCommands are all verbs and their flags.
func newCommands() *cobra.Command {
	return newRoot(&cli.Tool{Screen: output.NewScreen(nil, nil, func(string) string { return "" })})
}

// inOrder checks that texts come one after the other.
func inOrder(t *testing.T, all string, want ...string) {
	t.Helper()
	rest := all
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Errorf("it does not say %q where it should:\n%s", w, all)
			return
		}
		rest = after
	}
}

func save(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// places are the letters of a listing, sorted.
func places(t *testing.T, r result) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(r.stdout) {
		var row struct{ Place string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		found = append(found, row.Place)
	}
	slices.Sort(found)
	return found
}

// service is an incident whose records are dead letters, and the tests' way to its broker.
type service struct {
	*broker
	*demo.Incident
}

// virtual runs a test in virtual time. Its brokers are in memory, as those of incidentOf.
func virtual(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // the last clients end
		test(t)
	})
}

// inTrouble has 60 dead letters with a tax bug and 40 with a payment bug, of group billing.
func inTrouble(t *testing.T) *service {
	t.Helper()
	return incidentOf(t, demo.Bug{Class: "tax", Message: "no rate", Records: 60}, demo.Bug{Class: "payment", Message: "the bank said no", Records: 40})
}

// incidentOf is a service whose records are dead letters by these bugs, on a network in memory.
func incidentOf(t *testing.T, bugs ...demo.Bug) *service {
	t.Helper()
	var network kfake.VirtualNetwork
	return incidentOn(t, network.DialContext, []kfake.Opt{kfake.ListenFn(network.Listen), kfake.Ports(9092)}, bugs...)
}

// incidentOn is incidentOf on a network.
func incidentOn(t *testing.T, dial func(ctx context.Context, network, host string) (net.Conn, error), listen []kfake.Opt, bugs ...demo.Bug) *service {
	t.Helper()
	i, err := demo.StartIncidentOn(listen, []kgo.Opt{kgo.Dialer(dial), kgo.DisableClientMetrics()}, bugs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	bubble.Recode(i.Cluster)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := i.Fail(ctx); err != nil {
		t.Fatal(err)
	}
	b := &broker{Cluster: i.Cluster, addr: i.Address, dial: dial}
	return &service{b.open(t), i}
}

// as returns an invocation on the service's broker, at the real time.
func (s *service) as() invocation {
	return invocation{env: map[string]string{"SIDING_BROKERS": s.addr}, dial: s.dial, now: time.Now}
}

// fast are the flags of a pace at which a run ends within some seconds.
var fast = []string{"--rate", "0", "--ramp", "0", "--window", "4s"}

func (s *service) redrive(t *testing.T, args ...string) result {
	t.Helper()
	return s.as().run(t, args...)
}

// exported returns the lines of an export of the open letters, whose partitions come in any order.
func (s *service) exported(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(strings.Lines(s.redrive(t, "export", "orders.dlq").stdout))
}

// heldUp opens a transaction on all partitions of a topic and aborts it some time later: readers of
// committed records wait.
func (s *service) heldUp(t *testing.T, topic string, during time.Duration) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.ListenAddrs()...), kgo.Dialer(s.dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("another-process"))
	if err != nil {
		t.Error(err)
		return
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Error(err)
	}
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Key: []byte("nothing")}).FirstErr(); err != nil {
		t.Error(err)
	}
	time.AfterFunc(during, func() {
		defer cl.Close()
		_ = cl.EndTransaction(context.Background(), kgo.TryAbort)
	})
}

// interruptedRun is a run that was stopped by Ctrl-C while it sent.
func (s *service) interruptedRun(t *testing.T) outcome {
	t.Helper()
	s.Fix("tax")
	ctx, stop := context.WithCancelCause(t.Context())
	i := s.as()
	i.heard = func(words string) {
		if strings.HasPrefix(words, "the canary succeeded") {
			time.AfterFunc(500*time.Millisecond, func() { stop(cli.ErrInterrupted) })
		}
	}
	got := i.in(ctx, t, "run", "orders.dlq", "--class", "tax", "--rate", "20", "--ramp", "0", "--window", "4s", "-o", "json")
	o := outcomeOf(t, got.stdout)
	want := fmt.Sprintf("the run is unfinished: redrive resume %s continues it, redrive abort %s ends it\nredrive: interrupted\n", o.Run, o.Run)
	if got.code != cli.ExitError || o.State != "sending" || o.Sent == 0 || o.Sent == o.Selected || o.Ended != nil || !strings.HasSuffix(got.stderr, want) {
		t.Fatalf("%+v", got)
	}
	return o
}

// whileSending runs the letters of tax at a rate, and does something else once the canary
// succeeded.
func (s *service) whileSending(t *testing.T, rate string, do func(run string)) result {
	t.Helper()
	done := make(chan struct{})
	i, name := s.as(), ""
	i.heard = func(words string) {
		if id, ok := strings.CutPrefix(words, "run "); ok {
			name, _, _ = strings.Cut(id, ":")
		}
		if strings.HasPrefix(words, "the canary succeeded") {
			go func() {
				defer close(done)
				do(name)
			}()
		}
	}
	got := i.run(t, "run", "orders.dlq", "--class", "tax", "--rate", rate, "--ramp", "0", "--window", "4s", "-o", "json")
	<-done
	return got
}

// outcome is a run as -o json prints it.
type outcome struct {
	Run, State, By, Owner                      string
	Why, Cause                                 *string
	Selected, Sent, Succeeded, Failed, Pending int64
	FailedByClass, Skipped                     map[string]int64
	Ended                                      *string
	Heartbeat, Started                         string
	Discarded, Unknown, Retrying               int64
	Rate                                       float64
}

func outcomeOf(t *testing.T, text string) (o outcome) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// readers are the verbs that take TOPIC and filters.
var readers = [][]string{{"summary"}, {"list"}, {"list", "--all"}, {"export"}, {"discard", "--why", "x", "--yes"}}

const hunter = "hunter2-hunter2"
