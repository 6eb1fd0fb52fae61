package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// broker is an embedded cluster of a test.
type broker struct {
	*kfake.Cluster
	addr  string
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

// open makes the test's own clients.
func (b *broker) open(t *testing.T, opts ...kgo.Opt) *broker {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	b.cl, b.admin = cl, kadm.NewClient(cl)
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

// result is what a command left behind.
type result struct {
	stdout, stderr string
	code           int
}

// invocation is how a command is started.
type invocation struct {
	env    map[string]string
	stdin  string
	typed  func() // before stdin is read
	now    func() time.Time
	heard  func(words string) // each time that something is written to stderr
	folder string             // of configuration
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
		env: connect.Environment{Getenv: func(k string) string { return i.env[k] }, Folder: i.folder},
		now: i.now, user: "oncall",
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	code := run(ctx, p, args)
	return result{stdout.String(), stderr.String(), code}
}

// listener does something when it hears words.
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

// typist does something before it types.
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
	return invocation{env: map[string]string{"SIDING_BROKERS": b.addr}}.run(t, args...)
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

// fails checks that a command ended with a code, printed no data and said something.
func fails(t *testing.T, got result, code int, says string, args ...any) {
	t.Helper()
	if got.code != code || got.stdout != "" || !strings.Contains(got.stderr, says) {
		t.Errorf("%q: %+v, want exit code %d and %q", args, got, code, says)
	}
}

// newCommands are all verbs and their flags.
func newCommands() *cobra.Command {
	return newRoot(&tool{screen: output.NewScreen(nil, nil, func(string) string { return "" })})
}

// quietTool is a tool at noon whose words are kept.
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

// deleteTo has a partition begin at an offset, as retention would.
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
