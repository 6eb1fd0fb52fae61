package costs

import (
	"errors"
	"testing"

	"github.com/sidingkafka/siding/classify"
)

var sink any

// A mark is an allocation of package classify, and so is the text of a panic, which package fmt
// makes. Not parallel: it counts the allocations of the process.
func TestHold_CountsWhatSidingsCodeAllocatesForARecord(t *testing.T) {
	if race || testing.CoverMode() != "" {
		t.Skip("the race detector and coverage change what is allocated")
	}
	err := errors.New("x")
	mark := func() { sink = classify.Terminal(err) }
	panicked := &classify.PanicError{Value: "a text of over sixteen bytes"}
	c := counter{t: t, ours: map[stack]bool{}}
	for name, tt := range map[string]struct {
		before, each func()
		want         cost
	}{
		"a mark": {each: mark, want: cost{1, 64}},
		"two marks, and a thousand before": {
			before: func() {
				for range 1000 {
					mark()
				}
			},
			each: func() {
				mark()
				mark()
			},
			want: cost{2, 128},
		},
		"by the standard library": {each: func() { _ = panicked.Error() }, want: cost{1, 48}},
		"by the test":             {each: func() { sink = make([]byte, 100) }},
	} {
		got := c.perRecord(func(b *testing.B) {
			if tt.before != nil {
				tt.before()
			}
			for b.Loop() {
				tt.each()
			}
		})
		if got.String() != tt.want.String() { // fmt has a pool, which begins empty
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
