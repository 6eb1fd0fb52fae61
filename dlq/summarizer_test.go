package dlq

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/costs"
)

// The count of a million letters allocates their failures, not the letters. Not parallel: it counts
// the allocations of the process.
func TestSummarizer_CostsNoMoreThanItsCeilings(t *testing.T) {
	costs.Hold(t, BenchmarkSummarizer_Letter, BenchmarkHeaderView, BenchmarkLetter)
}

func BenchmarkSummarizer_Letter(b *testing.B) {
	letters := storm(5_000)
	l := NewLedger("t", "l")
	note := &LedgerRecord{Record: &kgo.Record{}, Entry: Entry{State: Succeeded}}
	for i := range int64(len(letters) / 2) {
		note.Letter = 2 * i
		l.take(note)
	}
	ta := newSummarizer(l, Filter{})
	ta.partitions[0] = &summarizedLetter{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%len(letters) == 0 {
			ta.judge.deduper = newDeduper()
		}
		ta.add(letters[i%len(letters)])
	}
}

// A glance at a letter reads what a summary counts.
func BenchmarkHeaderView(b *testing.B) {
	letters := storm(1_000)
	var g headerView
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		g.read(letters[i%len(letters)].Headers)
	}
}

// A letter has all headers parsed.
func BenchmarkLetter(b *testing.B) {
	letters := storm(1_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		newLetter(letters[i%len(letters)], builtin)
	}
}
