package chaos

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A log is cut between batches, and says what is gone. A short one keeps its half.
func TestOlderLog_LosesWholeBatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		batches, size int
		kept          int64
		ok            bool
	}{
		{100, 1000, 84, true}, {10, 100, 5, true}, {1, 100, 0, false}, {0, 0, 0, false},
	} {
		var text []byte
		for i := range test.batches {
			text = binary.BigEndian.AppendUint64(text, uint64(10*i))
			text = binary.BigEndian.AppendUint32(text, uint32(test.size-batchHead))
			text = append(text, make([]byte, test.size-batchHead)...)
		}
		file := filepath.Join(t.TempDir(), "0.dat")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		from, ok, err := cutLog(file)
		if err != nil || ok != test.ok || from != 10*test.kept {
			t.Errorf("%d batches: %d is gone, %v, %v; want %d, %v", test.batches, from, ok, err, 10*test.kept, test.ok)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := test.kept * int64(test.size); ok && info.Size() != want {
			t.Errorf("%d batches: %d bytes are left, want %d", test.batches, info.Size(), want)
		}
	}
}

// Records in place of a lost end have a leader epoch above those that were lost, even if the broker
// is killed again before it has written one: by it members find that their offsets are of the past.
func TestEmbedded_EpochsOutliveKills(t *testing.T) {
	t.Parallel()
	dir, of := t.TempDir(), trace.TP{Topic: "orders", Partition: 0}
	e, err := startEmbedded(filepath.Join(dir, "broker"), filepath.Join(dir, "broker.log"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.close() }()
	write := func() {
		cl, err := kgo.NewClient(append(e.options(true), kgo.DefaultProduceTopic(of.Topic))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, -1, nil, of.Topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Fatal(err)
		}
		for range 4 { // batches
			if err := cl.ProduceSync(t.Context(), kgo.StringRecord("o")).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	if err := e.moveLeaders(); err != nil {
		t.Fatal(err)
	}
	write()
	before, err := e.leaderEpochs()
	if err != nil {
		t.Fatal(err)
	}
	lost := int64(-1)
	if err := e.older(of, func(from int64) { lost = from }); err != nil || lost < 0 {
		t.Fatalf("the log lost its end from %d: %v", lost, err)
	}
	if err := e.restart(true, 0); err != nil {
		t.Fatal(err)
	}
	after, err := e.leaderEpochs()
	if err != nil {
		t.Fatal(err)
	}
	if after[of] <= before[of] {
		t.Errorf("the leader epoch is %d, that of lost records %d", after[of], before[of])
	}
}
