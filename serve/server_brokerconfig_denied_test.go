package serve_test

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/serve"
)

// A ledger forgets what became of letters, so no rule redrives. The server lost the permission to
// see that, and took the ledger for a good one: the rule redrove.
func TestServer_ALedgerThatForgetsDoesSoUnseen(t *testing.T) {
	t.Parallel()
	columns := serverRights(t)
	sees := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "orders.dlq.ledger", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribeConfigs, Allow: true}
	all := append(slices.Concat(columns[:]...), sees)
	guardAs(t, serve.Config{RulesFile: rules(t, soon)}, all, func(is *guarded) {
		policy, kept := "compact,delete", "60000"
		changes := []kadm.AlterConfig{{Name: "cleanup.policy", Value: &policy}, {Name: "retention.ms", Value: &kept}}
		if got, err := kadm.NewClient(is.admin).AlterTopicConfigs(is.t.Context(), changes, "orders.dlq.ledger"); err != nil || got[0].Err != nil {
			is.t.Fatal(got, err)
		}
		is.within(90*time.Second, "the ledger forgets", func() bool { return is.log.count("siding: a ledger forgets") == 1 })
		is.revoke(sees)
		time.Sleep(time.Hour)
		if n := is.done.Load(); n != 0 {
			is.t.Errorf("%d letters came home, want none", n)
		}
	})
}
