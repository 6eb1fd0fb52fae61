package serve_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// The server loses all its rights on one ledger, or on one dead-letter topic. The letters of other
// topics are read as before: the brokers' answer about one topic was an error about all of them.
func TestServer_ADeniedTopicHidesNoOther(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"orders.dlq.ledger", "orders.dlq"} {
		t.Run(denied, func(t *testing.T) {
			t.Parallel()
			columns := serverRights(t)
			all := slices.Concat(columns[:]...)
			for _, name := range []string{"bills.dlq", "bills.dlq.ledger"} {
				for _, op := range []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs} {
					all = append(all, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
				}
			}
			guardAs(t, serve.Config{Refresh: soonRefreshed}, all, func(is *guarded) {
				as := &station{t: is.t, k: consumertest.On(is.t, is.opts...)}
				towns(is.t, as.k, "bills")
				as.lettersOf("bills", 1)
				open := func(n int64) func() bool {
					return func() bool {
						var topic api.Topic
						return is.ask(http.MethodGet, "/topics/bills.dlq", "", &topic) == http.StatusOK && topic.Known != nil && topic.Open == n
					}
				}
				is.within(5*time.Minute, "the letter is known", open(1))
				for _, right := range all {
					if right.Name == denied {
						is.revoke(right)
					}
				}
				for n := range int64(4) {
					as.lettersOf("bills", 1)
					is.within(15*time.Second, fmt.Sprintf("letter %d is known beside a denied topic", n+2), open(n+2))
					time.Sleep(time.Minute)
				}
				if denied == "orders.dlq.ledger" {
					topic := ask[api.Topic](is.station, "/topics/orders.dlq")
					if !strings.Contains(topic.Problem, denied) {
						is.t.Errorf("of the denied topic the server says %+v", topic)
					}
				}
			})
		})
	}
}
