package dlq

import (
	"errors"
	"testing"
	"time"
)

// A record of a newer siding, or a broken one, is named, and hides no other.
func TestPruneRecords_NamesWhatCannotBeRead(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		good := PruneRecord{ID: "2", At: time.UnixMilli(5).UTC(), Until: map[int32]int64{0: 1}, Letters: 1}
		r, err := good.record("one.dlq.ledger")
		if err != nil {
			t.Fatal(err)
		}
		k.produce(t, RunRecord("one.dlq.ledger", "prune/1", []byte(`{"v":2}`)), r, RunRecord("one.dlq.ledger", "prune/3", []byte(`{`)),
			RunRecord("one.dlq.ledger", "prune/4", []byte(`{"v":1,"topicId":"x"}`)))
		got, err := k.ledger("one.dlq").PruneRecords(t.Context())
		if len(got) != 1 || got[0].ID != "2" || got[0].Letters != 1 || !errors.Is(err, ErrNewerVersion) {
			t.Errorf("records %+v, %v", got, err)
		}
		wantError(t, err, `with key "run/prune/3"`)
		wantError(t, err, `its topic id is "x"`)
	})
}
