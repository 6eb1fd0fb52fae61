package look

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

var long = strings.Repeat("long ", 30)

// A table that is too wide for its terminal does without some columns, and not without those that
// one acts by.
func TestLetterFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	letter := &dlq.Letter{Record: &kgo.Record{Topic: "orders.dlq", Partition: 11, Offset: 1234567, Key: []byte("order-1234567")}, Meta: headers.Meta{
		Class: "payment.Declined", Reason: headers.ReasonExhausted, Group: "billing-service", Attempts: 12, FailedAt: clitest.Noon, Message: long,
	}}
	clitest.Fit{Needs: []string{"PLACE", "CLASS", "KEY", "MESSAGE"}, Always: []string{"PLACE", "CLASS"}, Shows: "payment.Declined"}.Check(t, "list", letterFields(letter))
}
