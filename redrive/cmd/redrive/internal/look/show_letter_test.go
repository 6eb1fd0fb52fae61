package look_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestShow_ReportsWhyThereIsNoLetter(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(3, "orders.dlq"), kfake.SeedTopics(1, "orders")).Open(t)
	for range 3 {
		b.Produce(t, roottest.Letter("orders.dlq", 0, 0, headers.Meta{}), roottest.Letter("orders.dlq", 1, 0, headers.Meta{}))
	}
	b.DeleteTo(t, "orders.dlq", 0, 2)
	b.DeleteTo(t, "orders.dlq", 1, 3)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"orders.dlq", "0:1"}, cli.ExitError, "find letter orders.dlq/0/1: there is no letter any more: the partition begins at offset 2"},
		{[]string{"orders.dlq", "0:3"}, cli.ExitError, "orders.dlq/0/3: there is no letter: the partition ends at offset 3"},
		{[]string{"orders.dlq", "1:0"}, cli.ExitError, "there is no letter any more: the partition begins at offset 3"},
		{[]string{"orders.dlq", "3:0"}, cli.ExitError, "there is no letter: the topic has 3 partitions"},
		{[]string{"orders.dlq", "0"}, cli.ExitUsage, `"0" is not partition:offset, such as 3:41`},
		{[]string{"orders.dlq", "-1:0"}, cli.ExitUsage, "unknown shorthand flag"},
		{[]string{"orders.dlq"}, cli.ExitUsage, "P:OFFSET is missing: redrive show TOPIC P:OFFSET"},
		{[]string{"orders.dlq", "0:1", "2"}, cli.ExitUsage, `too many arguments: ["2"]: redrive show TOPIC P:OFFSET`},
		{[]string{"orders.retry.5s", "0:1"}, cli.ExitUsage, "did you mean orders.dlq?"},
		{[]string{"orders.dlq", "0:2", "--as", "xml"}, cli.ExitUsage, "choose text, json, hex"},
	} {
		got := b.Redrive(t, append([]string{"show"}, c.args...)...)
		if got.Code != c.code || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) || !strings.HasPrefix(got.Stderr, "redrive: ") {
			t.Errorf("show %q: exit code %d, stdout %q, stderr %q; want %d and %q", c.args, got.Code, got.Stdout, got.Stderr, c.code, c.want)
		}
	}
}
