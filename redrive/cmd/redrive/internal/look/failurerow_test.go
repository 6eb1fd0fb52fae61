package look

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

func TestFailureFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class string
		fit   clitest.Fit
	}{
		"a class":        {"payment.Declined", clitest.Fit{Needs: []string{"COUNT", "CLASS", "FINGERPRINT", "LAST", "SHOW", "SAMPLE"}, Shows: "3649751aadbf4e23"}},
		"a long class":   {"java.lang.IllegalStateException", clitest.Fit{Needs: []string{"COUNT", "CLASS", "LAST", "SHOW", "SAMPLE"}, Shows: "java.lang.IllegalStateException"}},
		"a longer class": {strings.Repeat("com.example.", 10), clitest.Fit{Needs: []string{"COUNT", "CLASS", "LAST", "SHOW", "SAMPLE"}, Shows: "11:1234567"}},
	} {
		c.fit.Always = []string{"COUNT", "CLASS", "SHOW"}
		c.fit.Check(t, name, failureFields(&dlq.Summary{})(dlq.Failure{
			Class: c.class, Fingerprint: "3649751aadbf4e23", Count: 123456, First: clitest.Noon, Last: clitest.Noon, Partition: 11, Offset: 1234567, Sample: long,
		}))
	}
}

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

func TestTopicFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	kept := 336 * time.Hour
	topic := topicFields(
		subject.Sibling{Topic: "payments-service.dlq", Partitions: 12}, false, consumed{},
		topicStats{total: 123456, recent: 123456, oldest: clitest.Noon.Add(-kept), retention: &kept},
		topicContents{123456, 123456, 123456, output.Ago(clitest.Noon), "payment.Declined", []string{"billing-service", "mail"}}, clitest.Noon, false,
	)
	clitest.Fit{Needs: []string{"TOPIC", "OPEN", "NEXT EXPIRY", "TOP CLASS"}, Always: []string{"TOPIC", "OPEN", "NEXT EXPIRY"}, Shows: "payment.Declined"}.Check(t, "topics", topic)
}
