package look_test

import (
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

func TestDoctor_NamesMissingPermissions(t *testing.T) {
	t.Parallel()
	b := roottest.Guarded(t, []kfake.ACL{
		roottest.ACLOn("orders.dlq", kmsg.ACLOperationRead), roottest.ACLOn("orders.dlq.ledger", kmsg.ACLOperationRead), roottest.ACLOn("orders.dlq.ledger", kmsg.ACLOperationWrite),
		roottest.ACLOn("orders", kmsg.ACLOperationWrite), roottest.ACLOn("orders.retry.5s", kmsg.ACLOperationDescribe),
	})
	got := b.As("ann").Run(t, "doctor", "orders.dlq", "-o", "json")
	roottest.Prints(t, got, cli.ExitLacking, `{"feature":"discard letters of orders.dlq","state":"works"`, "lacking")
	for feature, op := range map[string]string{"redrive": "READ on topic orders.retry.5s", "prune": "DELETE on topic orders.dlq"} {
		_, after, _ := strings.Cut(got.Stdout, `"feature":"`+feature+` letters of orders.dlq","state":"lacking"`)
		line, _, _ := strings.Cut(after, "\n")
		if !strings.Contains(line, op) {
			t.Errorf("%s lacks %q:\n%s", feature, op, got.Stdout)
		}
	}
}
