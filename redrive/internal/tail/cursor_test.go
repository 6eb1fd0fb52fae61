package tail

import (
	"testing"
)

// A batch that is larger than what is asked for stops nothing: more is asked for until it fits, but
// not for one that is the run's own, and will be passed over.
func TestCursor_AsksForMoreUntilABatchFits(t *testing.T) {
	t.Parallel()
	p := &cursor{at: 7, limit: headBytes, stuck: -1}
	p.ask(7, false, 100)
	if p.limit != headBytes {
		t.Errorf("after one empty answer %d bytes are asked for, want %d: the batch may be the run's", p.limit, headBytes)
	}
	for i, want := range []int32{fillBytes, 4 * fillBytes, 16 * fillBytes, 64 * fillBytes, maxBytes, maxBytes} {
		if p.ask(7, false, 100); p.limit != want {
			t.Errorf("after %d more %d bytes are asked for, want %d", i+1, p.limit, want)
		}
	}
	if p.ask(8, false, 100); p.limit != headBytes || p.at != 8 {
		t.Errorf("behind it %d bytes are asked for from %d on", p.limit, p.at)
	}
	if p.ask(100, true, 100); p.limit != fillBytes {
		t.Errorf("where others write %d bytes are asked for, want %d", p.limit, fillBytes)
	}
	if p.ask(100, false, 100); p.limit != headBytes {
		t.Errorf("at the end %d bytes are asked for, want %d", p.limit, headBytes)
	}
}
