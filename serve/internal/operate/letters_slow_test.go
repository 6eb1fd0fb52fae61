package operate

import (
	"context"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// An expression that takes 260 ms for each letter took 52 s for one page: time was looked at after
// each batch alone. Pages come in time now, and together have each letter once. A request that ends
// ends the work.
func TestDesk_PageOfSlowLettersComesInTime(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters, each = 60, 260 * time.Millisecond
		ctx, d, top := deskOver(t, k, letters)
		seen := 0
		sel := &selection.Selection{Reads: func(*dlq.Letter) bool {
			time.Sleep(each)
			return true
		}}
		places := map[[2]int64]bool{}
		for before := (dlq.Cursor{}); ; {
			began := time.Now()
			page, err := readPage(ctx, d, top, sel, false, before, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > longestRead+longestRead/2 || page.Examined == 0 {
				t.Errorf("a page of %d letters takes %v", page.Examined, took)
			}
			for _, l := range page.Letters {
				places[[2]int64{int64(l.Partition), l.Offset}] = true
			}
			if seen += len(page.Letters); page.Next == "" {
				break
			}
			if before, err = dlq.ParseCursor(page.Next); err != nil {
				t.Fatal(err)
			}
		}
		if seen != letters || len(places) != letters {
			t.Errorf("the pages have %d letters, %d of them once, want %d", seen, len(places), letters)
		}
		began := time.Now()
		short, end := context.WithTimeout(ctx, time.Second)
		defer end()
		if _, err := readPage(short, d, top, sel, false, dlq.Cursor{}, 1000); err == nil || time.Since(began) > time.Second+2*each {
			t.Errorf("a request of a second ends after %v with %v", time.Since(began), err)
		}
	})
}
