package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
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

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

var update = flag.Bool("update", false, "write the golden files again")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// broker is an embedded cluster of a test.
type broker struct {
	*kfake.Cluster
	addr  string
	dial  func(ctx context.Context, network, host string) (net.Conn, error) // nil is TCP
	admin *kadm.Client
	cl    *kgo.Client
}

func newBroker(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &broker{Cluster: c, addr: strings.Join(c.ListenAddrs(), ",")}
}

// inMemory is newBroker on a network in memory, for a test in virtual time.
func inMemory(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	var network kfake.VirtualNetwork
	b := newBroker(t, append(opts, kfake.ListenFn(network.Listen), kfake.Ports(9092))...)
	b.dial = network.DialContext
	return b
}

// client makes a client that writes to the partition that a record names.
func (b *broker) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.ListenAddrs()...), kgo.Dialer(b.dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// open makes the test's own clients.
func (b *broker) open(t *testing.T, opts ...kgo.Opt) *broker {
	t.Helper()
	b.cl = b.client(t, opts...)
	b.admin = kadm.NewClient(b.cl)
	return b
}

func (b *broker) topic(t *testing.T, name string, partitions int32, configs map[string]string) {
	t.Helper()
	values := map[string]*string{}
	for k, v := range configs {
		values[k] = &v
	}
	if _, err := b.admin.CreateTopic(t.Context(), partitions, 1, values, name); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := b.cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// letter is a dead letter that failed some time before noon.
func letter(topic string, partition int32, ago time.Duration, m headers.Meta) *kgo.Record {
	at := noon.Add(-ago)
	if m.Reason == "" {
		m.Reason = headers.ReasonTerminal
	}
	m.FirstFailedAt, m.FailedAt = at.Add(-time.Minute), at
	return &kgo.Record{
		Topic: topic, Partition: partition, Timestamp: at, Key: []byte("k"), Value: []byte(`{"sku":"x"}`),
		Headers: m.Append([]kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-a")}}),
	}
}

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
		i.now = func() time.Time { return noon }
	}
	p := process{
		stdin: typist{strings.NewReader(i.stdin), i.typed}, stdout: &stdout, stderr: listener{&stderr, i.heard},
		env:    connect.Environment{Getenv: func(k string) string { return i.env[k] }, Folder: i.folder, Dial: i.dial},
		listen: i.listen, now: i.now, user: "oncall",
	}
	if i.full {
		p.stdout = fullDisk{}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	code := run(ctx, p, args)
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

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
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
	if got.code != exitDone || got.stderr != "" || strings.ContainsAny(got.stdout, "\x1b\u009b") || !utf8.ValidString(got.stdout) {
		t.Errorf("%s: %+v", name, got)
	}
	golden(t, name, got.stdout)
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
	return newRoot(&tool{screen: output.NewScreen(nil, nil, func(string) string { return "" })})
}

// quietTool returns a tool at noon, and the buffer to which it writes its words.
func quietTool(stdin io.Reader) (*tool, *bytes.Buffer) {
	words := new(bytes.Buffer)
	p := process{stdin: stdin, now: func() time.Time { return noon }}
	return &tool{process: p, screen: output.NewScreen(io.Discard, words, func(string) string { return "" })}, words
}

// commit commits a group's offset on a partition.
func (b *broker) commit(t *testing.T, group, topic string, partition int32, at int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: at, LeaderEpoch: -1})
	if _, err := b.admin.CommitOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// deleteTo deletes the records of a partition below an offset, as retention would.
func (b *broker) deleteTo(t *testing.T, topic string, partition int32, offset int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset})
	r, err := b.admin.DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
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

// openLetters are the places of the letters that are open.
func (b *broker) openLetters(t *testing.T) string {
	t.Helper()
	return strings.Join(places(t, b.redrive(t, "list", "orders.dlq", "-o", "jsonl")), " ")
}

// wantOpen checks which letters are open.
func (b *broker) wantOpen(t *testing.T, want string) {
	t.Helper()
	if got := b.openLetters(t); got != want {
		t.Errorf("open are %s, want %s", got, want)
	}
}

// content is the part of a letter that must not change.
type content struct {
	Offset     int64
	Key, Value []byte
	Headers    []kgo.RecordHeader
}

// hold returns the content of all letters of a dead-letter topic.
func (b *broker) hold(t *testing.T, topic string) map[int32][]content {
	t.Helper()
	held := map[int32][]content{}
	for l, err := range dlq.Read(t.Context(), topic, dlq.Filter{}, dlq.Cursor{}, kgo.SeedBrokers(b.ListenAddrs()...)) {
		if err != nil {
			t.Fatal(err)
		}
		r := l.Record
		held[r.Partition] = append(held[r.Partition], content{r.Offset, r.Key, r.Value, r.Headers})
	}
	return held
}

// wantHeld checks the content of all letters of a dead-letter topic.
func (b *broker) wantHeld(t *testing.T, topic string, want map[int32][]content) {
	t.Helper()
	if diff := cmp.Diff(want, b.hold(t, topic)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", topic, diff)
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

// as returns an invocation by a user of a guarded broker, whose password is the user's name.
func (b *broker) as(user string) invocation {
	return invocation{now: time.Now, env: map[string]string{"SIDING_BROKERS": b.addr, "SIDING_SASL": "PLAIN", "SIDING_SASL_USER": user, "SIDING_SASL_PASSWORD": user}}
}

// aclOn is a permission on a topic.
func aclOn(topic string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

// guarded is a broker with letters of group billing, which has a member, and with a user ann who
// has the given permissions.
func guarded(t *testing.T, permissions []kfake.ACL) *broker {
	t.Helper()
	admin := kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())
	b := newBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "ann", "ann", permissions...)).open(t, admin)
	for _, topic := range []string{"orders", "orders.retry.5s", "orders.dlq.ledger"} {
		b.topic(t, topic, 1, nil)
	}
	// Its letters are as old as noon.
	b.topic(t, "orders.dlq", 1, map[string]string{"retention.ms": "-1"})
	// A resolved letter, an open one, and a copy of the first. The ledger gets an entry about the
	// copy when the first letter is pruned.
	for _, offset := range []int64{7, 8, 7} {
		b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Original: headers.Position{Topic: "orders", Offset: offset, Timestamp: noon}}))
	}
	b.note(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: noon, By: "ada", Why: "x"})
	joined := make(chan struct{})
	member := b.client(t, admin, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, _ map[string][]int32) { close(joined) }))
	<-joined
	member.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"orders.retry.5s": {0: {Epoch: -1}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
			if err != nil || r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("commit: %v, %+v", err, r)
			}
		})
	return b
}

func kind(r kmsg.ACLResourceType) string {
	switch r {
	case kmsg.ACLResourceTypeGroup:
		return "group"
	case kmsg.ACLResourceTypeTransactionalId:
		return "transactional-id"
	}
	return "topic"
}

// service is an incident whose records are dead letters, and the tests' way to its broker.
type service struct {
	*broker
	*incident
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
	return incidentOf(t, bug{"tax", "no rate", 60, false}, bug{"payment", "the bank said no", 40, false})
}

// incidentOf is a service whose records are dead letters by these bugs, on a network in memory.
func incidentOf(t *testing.T, bugs ...bug) *service {
	t.Helper()
	var network kfake.VirtualNetwork
	return incidentOn(t, network.DialContext, []kfake.Opt{kfake.ListenFn(network.Listen), kfake.Ports(9092)}, bugs...)
}

// incidentOn is incidentOf on a network.
func incidentOn(t *testing.T, dial func(ctx context.Context, network, host string) (net.Conn, error), listen []kfake.Opt, bugs ...bug) *service {
	t.Helper()
	i, err := startIncidentOn(listen, []kgo.Opt{kgo.Dialer(dial), kgo.DisableClientMetrics()}, bugs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.stop)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := i.fail(ctx); err != nil {
		t.Fatal(err)
	}
	b := &broker{Cluster: i.cluster, addr: i.broker, dial: dial}
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
	s.fix("tax")
	ctx, stop := context.WithCancelCause(t.Context())
	i := s.as()
	i.heard = func(words string) {
		if strings.HasPrefix(words, "the canary succeeded") {
			time.AfterFunc(500*time.Millisecond, func() { stop(errInterrupted) })
		}
	}
	got := i.in(ctx, t, "run", "orders.dlq", "--class", "tax", "--rate", "20", "--ramp", "0", "--window", "4s", "-o", "json")
	o := outcomeOf(t, got.stdout)
	want := fmt.Sprintf("the run is unfinished: redrive resume %s continues it, redrive abort %s ends it\nredrive: interrupted\n", o.Run, o.Run)
	if got.code != exitError || o.State != "sending" || o.Sent == 0 || o.Sent == o.Selected || o.Ended != nil || !strings.HasSuffix(got.stderr, want) {
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

// aftermath is a dead-letter topic with letters of two groups, a copy, one that siding did not
// write, and one that was discarded: of 7 letters 5 are open.
func aftermath(t *testing.T, opts ...kfake.Opt) *broker {
	t.Helper()
	return newBroker(t, opts...).aftermath(t)
}

// aftermath gives a broker the topics of that name.
func (b *broker) aftermath(t *testing.T) *broker {
	t.Helper()
	b.open(t)
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

// readers are the verbs that take TOPIC and filters.
var readers = [][]string{{"summary"}, {"list"}, {"list", "--all"}, {"export"}, {"discard", "--why", "x", "--yes"}}

const hunter = "hunter2-hunter2"

func someTopics(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t).open(t)
	b.topic(t, "orders", 3, nil)
	b.topic(t, "orders.dlq", 3, map[string]string{"retention.ms": "1209600000"})
	b.topic(t, "orders.dlq.ledger", 3, nil)
	b.topic(t, "orders.retry.5s", 3, nil)
	b.topic(t, "orders.retry.30s", 3, nil)
	b.topic(t, "audit.dlq", 1, map[string]string{"retention.ms": "-1"}) // its source is gone
	b.topic(t, "payments", 1, nil)
	b.topic(t, "payments.dlq", 1, map[string]string{"retention.ms": "3600000"})
	b.produce(t,
		letter("orders.dlq", 0, 24*time.Hour, headers.Meta{Class: "http.503"}),
		letter("orders.dlq", 0, 30*time.Minute, headers.Meta{Class: "http.503"}),
		letter("orders.dlq", 1, time.Hour, headers.Meta{Class: "decode"}), // just within
		letter("orders.dlq", 2, 61*time.Minute, headers.Meta{Class: "decode"}),
		letter("payments.dlq", 0, 2*time.Hour, headers.Meta{}), // due to expire an hour ago
		letter("orders.retry.5s", 0, 0, headers.Meta{}), letter("orders.retry.5s", 0, 0, headers.Meta{}),
		letter("orders.retry.5s", 1, 0, headers.Meta{}),
	)
	// billing has a committed offset on two partitions of one tier. No group has one on the other
	// tier.
	b.commit(t, "billing", "orders.retry.5s", 0, 1)
	b.commit(t, "billing", "orders.retry.5s", 2, 0)
	b.commit(t, "other", "orders", 0, 0)
	return b
}
