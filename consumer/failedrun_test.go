package consumer

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

// A topic's guard keeps its last failure for as long as the topic fails, with the whole of an error
// of 5 MiB.
func TestFailedRun_BadRunKeepsOfATextWhatALineHas(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5<<20)
	x := failedRun{err: errors.New(long)}
	x.result.Message = long
	if text := x.badRun().Message; len(text) != mostError || unsafe.StringData(text) == unsafe.StringData(long) {
		t.Errorf("%d bytes of a text of %d are kept, or all", len(text), len(long))
	}
}
