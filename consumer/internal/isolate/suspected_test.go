package isolate

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Under OrderPartition a record that has to run alone waits for those before it.
func TestSuspected_OneAloneOvertakesNone(t *testing.T) {
	t.Parallel()
	w := New(Settings{CrashLimit: 3, Now: time.Now}, Start{Evidence: offsets.Evidence{Suspect: 3, Singly: []offsets.Span{{First: 1, Last: 1}}}, End: -1})
	for _, ordered := range []bool{true, false} {
		is := &State{Window: &w, Tracker: &offsets.Tracker{}, Ordered: ordered, Waiting: func() []int64 { return []int64{0, 1, 2} }}
		var found suspected
		if found.add(nil, is, nil, time.Now()); (found.single == nil) != ordered || len(found.groups) != 1 {
			t.Errorf("ordered: %v; alone %+v, groups %+v", ordered, found.single, found.groups)
		}
	}
}
