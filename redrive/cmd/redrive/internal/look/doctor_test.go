package look_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestDoctor_PrintsAllFeatures(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t, kfake.BrokerConfigs(map[string]string{"offset.metadata.max.bytes": "100"}))
	got := b.Redrive(t, "doctor", "orders.dlq")
	roottest.Prints(t, got, cli.ExitDone, "set offset.metadata.max.bytes to 4096 on the brokers", "cluster ")
	for _, want := range []string{"redrive run ", "list letters of orders.dlq ", "redrive letters of orders.dlq ", "prune letters of orders.dlq "} {
		if !strings.Contains(got.Stdout, "\n"+want) {
			t.Errorf("it lacks %q:\n%s", want, got.Stdout)
		}
	}
	roottest.Prints(t, b.Redrive(t, "doctor", "none.dlq"), cli.ExitError, "", "topic none.dlq does not exist")
	roottest.Prints(t, b.Redrive(t, "doctor", "-o", "json"), cli.ExitDone, `{"feature":"redrive run","state":"works","why":null,"do":null}`, "cluster kfake: 1 broker, ")
}

func TestDoctor_EndsWithItsOwnCode(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.MaxVersions(kversion.V0_10_2())).Open(t)
	roottest.Prints(t, b.Redrive(t, "doctor"), cli.ExitLacking, "upgrade the brokers", "3 features are lacking of siding here")
}

// With the permissions that docs/operations.md lists a plan is made, and a run goes on. What is
// missing of them doctor names, without reading a letter.
func TestDoctor_AgreesWithAPlan(t *testing.T) {
	t.Parallel()
	documented := append(roottest.DocumentedPermissions(t, 0), roottest.DocumentedPermissions(t, 1)...)
	documented = append(documented, roottest.ACLOn("orders.dlq", kmsg.ACLOperationDelete))
	lacks := func(lost func(kfake.ACL) bool) []kfake.ACL { return slices.DeleteFunc(slices.Clone(documented), lost) }
	of := func(resource kmsg.ACLResourceType) func(kfake.ACL) bool {
		return func(a kfake.ACL) bool { return a.Resource == resource }
	}
	for name, tt := range map[string]struct {
		permissions []kfake.ACL
		code        int
		want        string
	}{
		"all":                 {documented, cli.ExitDone, `"redrive letters of orders.dlq","state":"works"`},
		"no group":            {lacks(of(kmsg.ACLResourceTypeGroup)), cli.ExitDone, `"follow redriven letters of orders.dlq","state":"unknown","why":"no group is visible`},
		"no transactional id": {lacks(of(kmsg.ACLResourceTypeTransactionalId)), cli.ExitLacking, `"redrive letters of orders.dlq","state":"lacking","why":"not authorized: the user needs WRITE on transactional-id siding-redrive-orders.dlq-a`},
		"no deletion":         {lacks(func(a kfake.ACL) bool { return a.Operation == kmsg.ACLOperationDelete }), cli.ExitLacking, `"prune letters of orders.dlq","state":"lacking","why":"not authorized: the user needs DELETE on topic orders.dlq`},
		"nothing":             {nil, cli.ExitLacking, `"list letters of orders.dlq","state":"lacking"`},
	} {
		b := roottest.Guarded(t, tt.permissions)
		got := b.As("ann").Run(t, "doctor", "orders.dlq", "-o", "jsonl")
		if got.Code != tt.code || !strings.Contains(got.Stdout, tt.want) {
			t.Errorf("%s: want code %d and %s, got %d and\n%s%s", name, tt.code, tt.want, got.Code, got.Stdout, got.Stderr)
		}
		plan := b.As("ann").Run(t, "plan", "orders.dlq")
		if works := !strings.Contains(got.Stdout, `drive letters of orders.dlq","state":"lacking`) && !strings.Contains(got.Stdout, `letters of orders.dlq","state":"unknown`) && name != "nothing"; works != (plan.Code == cli.ExitDone) {
			t.Errorf("%s: plan ends with %d: %s\n%s", name, plan.Code, plan.Stderr, got.Stdout)
		}
	}
}
