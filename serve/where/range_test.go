package where

import (
	"testing"

	"github.com/sidingkafka/siding/dlq"
)

func TestParseRanges_JoinsPartitionsAndOffsets(t *testing.T) {
	t.Parallel()
	got, err := ParseRanges("", []string{"0", "2"}, []string{"2:5", "2:10-19"})
	if err != nil || len(got) != 3 || got[0] != dlq.At(2, 5) || got[1] != (dlq.Range{Partition: 2, From: 10, Until: 20}) || got[2] != (dlq.Range{Partition: 0}) {
		t.Errorf("the ranges are %v, %v", got, err)
	}
	for _, wrong := range []string{"", "5", "x:1", "0:", "0:-", "0:5-4", "0:1-2-3", "-1:3", "99999999999:1"} {
		if _, err := ParseRanges("", nil, []string{wrong}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	if _, err := ParseRanges("", []string{"1"}, []string{"0:1"}); err == nil {
		t.Error("an offset of a partition that is not named is taken")
	}
}

// Whatever is read as ranges selects nothing outside of them.
func FuzzParseRanges_NeverPanics(f *testing.F) {
	f.Add("0", "0:1-2")
	f.Add("7", "7:9223372036854775807")
	f.Add("-", "1:-5")
	f.Fuzz(func(t *testing.T, partition, offset string) {
		got, err := ParseRanges("--", []string{partition}, []string{offset})
		for _, r := range got {
			if err == nil && (r.Partition < 0 || r.From < 0 || r.Until != 0 && r.Until <= r.From) {
				t.Errorf("%q, %q: %+v", partition, offset, r)
			}
		}
	})
}
