package tail

import (
	"testing"
)

// A batch that is larger than what is asked for stops nothing: more is asked for until it fits, but
// not for one that is the run's own, and will be passed over.
func TestCursor_AsksForMoreUntilABatchFits(t *testing.T) {
	t.Parallel()
	p := &cursor{at: 7, limit: tailGlance, stuck: -1}
	p.ask(7, false, 100)
	if p.limit != tailGlance {
		t.Errorf("after one empty answer %d bytes are asked for, want %d: the batch may be the run's", p.limit, tailGlance)
	}
	for i, want := range []int32{tailFill, 4 * tailFill, 16 * tailFill, 64 * tailFill, tailMost, tailMost} {
		if p.ask(7, false, 100); p.limit != want {
			t.Errorf("after %d more %d bytes are asked for, want %d", i+1, p.limit, want)
		}
	}
	if p.ask(8, false, 100); p.limit != tailGlance || p.at != 8 {
		t.Errorf("behind it %d bytes are asked for from %d on", p.limit, p.at)
	}
	if p.ask(100, true, 100); p.limit != tailFill {
		t.Errorf("where others write %d bytes are asked for, want %d", p.limit, tailFill)
	}
	if p.ask(100, false, 100); p.limit != tailGlance {
		t.Errorf("at the end %d bytes are asked for, want %d", p.limit, tailGlance)
	}
}
