package work

import (
	"errors"
	"testing"
	"time"
)

// A record counts once, and a failing one never.
func TestWork_CountsEachRecordOnce(t *testing.T) {
	t.Parallel()
	j := Job{Records: 100, OneIn: 10, Rate: 1, Partitions: 2}
	w := New(j)
	for _, warm := range []int{100, 101} {
		if err := w.Handle(t.Context(), Value(warm, time.Time{})); err != nil {
			t.Error(err)
		}
	}
	<-w.Ready
	for i := range j.Records {
		for range 2 {
			err := w.Handle(t.Context(), Value(i, time.Now().Add(-time.Minute)))
			if failed := errors.Is(err, ErrUnavailable); failed != j.Fails(i) {
				t.Errorf("record %d: %v", i, err)
			}
		}
	}
	<-w.Handled
	rep, healthy := w.Report(), 100-j.Failing()
	if rep.Handled != healthy || rep.Again != healthy || rep.Disorder != 0 {
		t.Errorf("got %+v, want %d records, twice each", rep, healthy)
	}
	if rep.P99 < 60_000 || rep.P99 > 120_000 {
		t.Errorf("p99 is %v ms, want a minute", rep.P99)
	}
	if n := j.Failing(); n < 5 || n > 20 {
		t.Errorf("%d of 100 fail, want about 10", n)
	}
}

// The order by key is kept if the handler of a key's last record has ended.
func TestWork_FindsDisorder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		order []int
		want  int
	}{
		{[]int{0, 1, 2, 3, 4, 5}, 0},
		{[]int{1, 3, 0, 5, 2, 4}, 0},
		{[]int{0, 3, 1, 2, 4, 5}, 1},
	} {
		w := New(Job{Records: 6, Keys: 2})
		for _, i := range tt.order {
			if err := w.Handle(t.Context(), Value(i, time.Time{})); err != nil {
				t.Error(err)
			}
		}
		if got := w.Report().Disorder; got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.order, got, tt.want)
		}
	}
}
