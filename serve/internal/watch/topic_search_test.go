package watch

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// Only an expression that may ask for the time has letters read again. A class may have the word.
func TestTopic_SearchBeginsAnewIfTheTimeMayDecide(t *testing.T) {
	t.Parallel()
	for where, anew := range map[string]bool{"value.n > 1": false, "failedAt < now()": true} {
		all, err := rule.Parse("rules.yaml", []byte(`rules:
  - {name: first, topics: '*', classes: [http.unknown], where: '`+where+`'}
  - {name: second, topics: '*', classes: [http.unknown], headers: [known]}
`))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			is := &Topic{DeadLetterTopic: redrive.DeadLetterTopic{Topic: "orders.dlq"}, Index: letterindex.New("orders.dlq", "orders.dlq.ledger")}
			now := time.Now()
			first := Search(is, &all[i], now)
			if again := Search(is, &all[i], now.Add(all[i].Wait)); (again != first) != anew {
				t.Errorf("where %s: rule %s begins anew: %t, want %t", where, all[i].Name, again != first, anew)
			}
		}
	}
}
