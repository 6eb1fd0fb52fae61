package storage

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// program builds the program of this working tree, of what is compiled for the tests. The go
// command links it again only if it changed.
func program(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, ".cache", "storage", "redrive")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", name, ".")
	cmd.Dir = filepath.Join(root, "redrive", "cmd", "redrive")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build redrive: %v\n%s", err, out)
	}
	return name
}

// result is the output of a command and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

// The exit codes of the program.
const (
	exitDone  = 0
	exitError = 1
)

// prints checks a command's exit code, and that it printed the given texts on stdout and on stderr.
// Where a text is empty, the command must have printed nothing.
func (got result) prints(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	lacks := func(text, want string) bool { return !strings.Contains(text, want) || want == "" && text != "" }
	if got.code != code || lacks(got.stdout, stdout) || lacks(got.stderr, stderr) {
		t.Errorf("%+v, want exit code %d, %q and %q", got, code, stdout, stderr)
	}
}

// content is the part of a letter that must not change.
type content struct {
	Offset     int64
	Key, Value []byte
	Headers    []kgo.RecordHeader
}

// letters returns the content of all letters of a dead-letter topic.
func (c *cluster) letters(topic string) map[int32][]content {
	c.T.Helper()
	all := map[int32][]content{}
	for l, err := range dlq.Read(c.T.Context(), topic, dlq.Filter{}, dlq.Cursor{}, c.Opts...) {
		if err != nil {
			c.T.Fatal(err)
		}
		r := l.Record
		all[r.Partition] = append(all[r.Partition], content{r.Offset, r.Key, r.Value, r.Headers})
	}
	return all
}

func (c *cluster) wantLetters(topic string, want map[int32][]content) {
	c.T.Helper()
	if diff := cmp.Diff(want, c.letters(topic)); diff != "" {
		c.T.Errorf("%s (-want +got):\n%s", topic, diff)
	}
}

// aftermath writes letters to orders.dlq: of two groups, a copy, one that siding did not write, and
// one that was discarded. Of 7 letters 5 are open.
func (c *cluster) aftermath() {
	c.T.Helper()
	now := time.Now()
	discarded := dlq.Entry{State: dlq.Discarded, At: now.Add(-time.Minute), By: "ada", Why: "paid\x1b[2J by hand"}
	failed := func(partition int32, ago time.Duration, offset int64, group, class, print, message string) *kgo.Record {
		at := now.Add(-ago)
		m := headers.Meta{
			Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: partition, Offset: offset, Timestamp: at},
			Group:    group, Attempts: 3, Class: class, Fingerprint: print, Reason: headers.ReasonExhausted, Message: message,
			FirstFailedAt: at.Add(-time.Minute), FailedAt: at,
		}
		return &kgo.Record{
			Topic: "orders.dlq", Partition: partition, Timestamp: at, Key: []byte("k"), Value: []byte(`{"sku":"x"}`),
			Headers: m.Append([]kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-a")}}),
		}
	}
	records := []*kgo.Record{
		failed(0, 5*time.Hour, 1, "billing", "http.503", "00000000000000aa", "gone already"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, 4*time.Hour, 2, "billing", "http.503", "00000000000000aa", "no route\n\x1b[31mto host"),
		failed(0, time.Hour, 3, "billing", "http.503", "00000000000000aa", "timeout"),
		failed(1, 3*time.Hour, 1, "mail", "decode", "00000000000000bb", "bad JSON"),
		failed(1, 2*time.Hour, 2, "mail", "decode", "00000000000000cc", "no JSON"),
		{Topic: "orders.dlq", Partition: 1, Timestamp: now.Add(-time.Hour), Value: []byte("foreign")},
		discarded.Record("orders.dlq.ledger", 0, 0),
	}
	if err := c.Client.ProduceSync(c.T.Context(), records...).FirstErr(); err != nil {
		c.T.Fatal(err)
	}
}

// The program archives to storage with the interface of S3 too, by what its environment says. While
// the storage refuses that, prune deletes nothing.
func TestPrune_ArchivesToS3(t *testing.T) {
	t.Parallel()
	st := start(t)
	c := newCluster(t, "orders", "again")
	c.aftermath()
	name, home := program(t), t.TempDir()
	variables := maps.Clone(environment)
	variables["AWS_ENDPOINT_URL_S3"] = st.URL
	variables["SIDING_BROKERS"] = strings.Join(c.fake.ListenAddrs(), ",")
	variables["HOME"] = home
	redrive := func(args ...string) result {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, nil
		for key, value := range variables {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
		var failed *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	}
	was := c.letters("orders.dlq")
	args := []string{"prune", "orders.dlq", "--max-age", "1m", "--open", "--yes", "--archive", "s3://letters/dead/", "-o", "json"}
	st.refuse(func(int) bool { return true })
	redrive(args...).prints(t, exitError, "", "nothing was deleted: archive: write s3://letters/dead/orders.dlq/20")
	c.wantLetters("orders.dlq", was)
	st.refuse(nil)
	redrive("export", "orders.dlq", "--all", "--archive", "s3://letters/all.jsonl.gz").prints(t, exitDone, "EXPORTED  7\n", "")
	got := redrive(args...)
	if got.code != exitDone || !strings.Contains(got.stdout, `"deleted":7,`) || !strings.Contains(got.stdout, `"archive":"s3://letters/dead/orders.dlq/20`) {
		t.Errorf("%+v", got)
	}
	redrive("import", "again.dlq", "s3://letters/dead/").prints(t, exitDone, "IMPORTED  7\n", "")
	c.wantLetters("again.dlq", was)
	redrive("import", "again.dlq", "s3://letters/all.jsonl.gz").prints(t, exitDone, "COPIES", "")
}
