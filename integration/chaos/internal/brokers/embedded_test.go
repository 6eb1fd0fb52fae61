package brokers

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

func TestMain(m *testing.M) {
	child.Serve(map[string]child.Role{Role: func(job []byte, in *bufio.Reader) error {
		var j Job
		if err := json.Unmarshal(job, &j); err != nil {
			return err
		}
		return Serve(j, in, os.Stdout, nil)
	}})
	os.Exit(m.Run())
}

// Records in place of a lost end have a leader epoch above those that were lost, even if the broker
// is killed again before it has written one: by it members find that their offsets are of the past.
func TestEmbedded_EpochsOutliveKills(t *testing.T) {
	t.Parallel()
	dir, of := t.TempDir(), trace.TP{Topic: "orders", Partition: 0}
	started, err := StartEmbedded(filepath.Join(dir, "broker"), filepath.Join(dir, "broker.log"), "")
	must(t, err)
	e := started.(*embedded)
	defer func() { _ = e.Close() }()
	write := func() {
		cl, err := kgo.NewClient(append(e.Options(true), kgo.DefaultProduceTopic(of.Topic))...)
		must(t, err)
		defer cl.Close()
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, -1, nil, of.Topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Fatal(err)
		}
		for range 4 { // batches
			must(t, cl.ProduceSync(t.Context(), kgo.StringRecord("o")).FirstErr())
		}
	}
	write()
	must(t, e.MoveLeaders())
	write()
	before, err := e.leaderEpochs()
	must(t, err)
	lost := int64(-1)
	if err := e.Older(of, func(from int64) { lost = from }); err != nil || lost < 0 {
		t.Fatalf("the log lost its end from %d: %v", lost, err)
	}
	must(t, e.Restart(true, 0))
	after, err := e.leaderEpochs()
	must(t, err)
	if after[of] <= before[of] {
		t.Errorf("the leader epoch is %d, that of lost records %d", after[of], before[of])
	}
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
