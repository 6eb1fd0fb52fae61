package cli_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestResource_NamesWhatTheUserMayNotDo(t *testing.T) {
	t.Parallel()
	blind, half := roottest.Guarded(t, nil), roottest.Guarded(t, []kfake.ACL{roottest.ACLOn("orders.dlq", kmsg.ACLOperationDescribe)})
	for _, c := range []struct {
		b    *roottest.Broker
		args []string
		code int
		data string
		want string
	}{
		{blind, []string{"show", "orders.dlq", "0:0"}, cli.ExitError, "", "not authorized: the user needs DESCRIBE on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation DESCRIBE --topic orders.dlq)"},
		{half, []string{"show", "orders.dlq", "0:0"}, cli.ExitError, "", "not authorized: the user needs READ on topic orders.dlq"},
		{blind, []string{"topics"}, cli.ExitDone, "", "or this user may see none"},
		{half, []string{"topics"}, cli.ExitDone, "orders.dlq", "warning: not authorized: the user needs DESCRIBE_CONFIGS on topic orders.dlq"},
	} {
		got := c.b.As("ann").Run(t, c.args...)
		roottest.Prints(t, got, c.code, c.data, c.want, c.args)
	}
}
