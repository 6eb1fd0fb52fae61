package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/internal/commitmark"
)

func TestHead_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.Int64Range(0, 1<<40).Draw(t, "floor")
		at, m := floor, Metadata{Guard: commitmark.Guard{}, Evidence: Evidence{Process: 1<<40 - 1}}
		for i := range rapid.IntRange(0, 300).Draw(t, "heads") {
			at += rapid.SampledFrom([]int64{1, 2, 70, 5000, 1 << 33}).Draw(t, "gap")
			if i == 0 {
				at = floor + rapid.Int64Range(0, 3).Draw(t, "first")
			}
			m.Heads = append(m.Heads, Head{at, rapid.IntRange(1, 12).Draw(t, "attempts"), rapid.Int64Range(1_800_000_000, 1_800_000_900).Draw(t, "due"), rapid.Int64Range(1_799_990_000, 1_800_000_000).Draw(t, "failed")})
		}
		m.Finished = []Span{{at + 2, at + 9}}
		limit := rapid.SampledFrom([]int{0, 12, 40, 41, 100, MetadataLimit, 1 << 16}).Draw(t, "limit")
		text := m.Encode(floor, limit)
		if len(text) > max(limit, len(commitmark.Mark)) {
			t.Fatalf("%d characters, want %d at most", len(text), limit)
		}
		got, ok := ParseMetadata(text, floor)
		if n := len(got.Heads); !ok || !slices.Equal(got.Heads, m.Heads[:n]) || limit > MetadataLimit && n < len(m.Heads) {
			t.Fatalf("%q is read as %v, was %v", text, got.Heads, m.Heads)
		}
		if limit == MetadataLimit && len(got.Heads) < min(len(m.Heads), 128) {
			t.Fatalf("%d heads of %d fit", len(got.Heads), len(m.Heads))
		}
	})
}

// Bad heads say nothing, and the text's other fields hold. A version that does not know heads reads
// the others as well: it ignores fields that it does not know.
func TestHead_WhatIsBrokenSaysNothing(t *testing.T) {
	t.Parallel()
	encoded := func(numbers ...uint64) string {
		var b []byte
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return base64.RawStdEncoding.EncodeToString(b)
	}
	for name, value := range map[string]string{
		"empty": "", "no base64": "***", "cut": "gICA", "no heads": encoded(1), "half a head": encoded(1, 2), "no due time": encoded(1, 2, 3), "no failure": encoded(1, 2, 1, 4),
		"no attempts": encoded(1, 2, 0, 4, 1), "twice the same": encoded(1, 2, 1, 4, 1, 0, 1, 4, 1), "beyond all offsets": encoded(1, 1<<62, 1, 4, 1),
		"too many attempts": encoded(1, 2, 1_000_001, 4, 1), "too late": encoded(1, 2, 1, 1<<38, 1), "too long ago": encoded(1, 2, 1, 4, 1<<38), "too late for all": encoded(1<<38, 2, 1, 1, 1),
		"an endless number": base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\xff", 20))),
	} {
		got, ok := ParseMetadata("siding 1 f=2s p=4fzyo82 u=64 k="+value+" b=Ag", 100)
		if !ok || got.Heads != nil || got.Until != 164 || !slices.Equal(got.Finished, []Span{{101, 101}}) {
			t.Errorf("%s: read as %+v, %v", name, got, ok)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add("AQIBBA")
	f.Fuzz(func(t *testing.T, value string) {
		heads := parseHeads(100, value)
		if !slices.IsSortedFunc(heads, func(a, b Head) int { return int(min(max(a.Offset-b.Offset, -1), 1)) }) {
			t.Fatalf("%q is read as %v", value, heads)
		}
		if len(heads) > 0 {
			if again := parseHeads(100, strings.TrimPrefix(appendHeads("", 100, heads, 1<<20), headsField)); !slices.Equal(again, heads) {
				t.Fatalf("%v is written as %v", heads, again)
			}
		}
	})
}
