package subject_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestWarnOfWhere_AFailingExpressionIsAWarning(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Produce(t, &kgo.Record{Topic: "orders.dlq", Partition: 0, Value: []byte("no JSON")})
	for _, verb := range readers {
		got := b.Redrive(t, append(append([]string{}, verb...), "orders.dlq", "--where", `value.sku == "x"`)...)
		if got.Code != cli.ExitDone || !strings.Contains(got.Stderr, "warning: --where failed on 2 of the letters, which are not chosen; the first: orders.dlq/") {
			t.Errorf("%q: %+v", verb, got)
		}
	}
}

// One of the classes had a typo, and its letters stayed.
func TestWarnOfClasses_NamesThoseWithoutLetters(t *testing.T) {
	t.Parallel()
	s := roottest.InTrouble(t)
	const message = "warning: --class bussy.* fits none of these letters of orders.dlq: redrive summary orders.dlq shows the classes there are\n"
	got := s.Redrive(t, "plan", "orders.dlq", "--class", "tax,bussy.*,pay*")
	if got.Code != cli.ExitDone || got.Stderr != message {
		t.Errorf("%+v", got)
	}
	roottest.Prints(t, s.Redrive(t, "discard", "orders.dlq", "--class", "tax,bussy.*", "--why", "x"), cli.ExitRefused, "", message+"60 letters")
}
