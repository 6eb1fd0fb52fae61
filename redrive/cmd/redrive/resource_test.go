package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestResource_NamesWhatTheUserMayNotDo(t *testing.T) {
	t.Parallel()
	blind, half := guarded(t, nil), guarded(t, []kfake.ACL{aclOn("orders.dlq", kmsg.ACLOperationDescribe)})
	for _, c := range []struct {
		b    *broker
		args []string
		code int
		want string
	}{
		{blind, []string{"show", "orders.dlq", "0:0"}, exitError, "not authorized: the user needs DESCRIBE on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation DESCRIBE --topic orders.dlq)"},
		{half, []string{"show", "orders.dlq", "0:0"}, exitError, "not authorized: the user needs READ on topic orders.dlq"},
		{blind, []string{"topics"}, exitDone, "or this user may see none"},
		{half, []string{"topics"}, exitDone, "warning: not authorized: the user needs DESCRIBE_CONFIGS on topic orders.dlq"},
	} {
		got := c.b.as("ann").run(t, c.args...)
		if got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%q: exit code %d, %s; want %d and %q", c.args, got.code, got.stderr, c.code, c.want)
		}
	}
	if got := half.as("ann").run(t, "topics"); !strings.Contains(got.stdout, "orders.dlq") {
		t.Errorf("what could be found out is not shown: %+v", got)
	}
}
