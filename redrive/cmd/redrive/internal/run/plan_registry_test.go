package run_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// An edit is one of what the value says. Its stored plan has the bytes that the schema makes of it,
// so that run --plan needs no registry. An edit that does not fit the schema is refused.
func TestPlan_EditsByTheRegistry(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders", "orders.retry.5s", "orders.dlq", "orders.dlq.ledger")).Open(t)
	b.Produce(t, roottest.Order(0, 'a', 5))
	b.Commit(t, "billing", "orders.retry.5s", 0, 0)
	env := map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_REGISTRY": roottest.NewRegistry(t).URL()}
	save := filepath.Join(t.TempDir(), "plan")
	for _, c := range []struct {
		stdin, code, says string
		flags             []string
	}{
		{"", "done", `"letters":1,`, []string{"--patch", `{"currency":"EUR"}`}},
		{"", "refused", "the JSON can't be written by schema 7: amount", []string{"--patch", `{"amount":"much"}`}},
		{"", "refused", "the JSON can't be written by schema 7: shop.Order has no field other", []string{"--patch", `{"other":1}`}},
		{`{"card":"a"}`, "refused", "the field amount of shop.Order is missing", []string{"--value-file", "-"}},
		{"no JSON", "refused", "it is no JSON", []string{"--value-file", "-"}},
		{`{"card":"z","amount":9,"currency":null}`, "done", `"letters":1,`, []string{"--value-file", "-", "--save", save}},
	} {
		got := roottest.Invocation{Env: env, Dial: b.Dial, Stdin: c.stdin}.Run(t, append([]string{"plan", "orders.dlq", "--wait", "-o", "json"}, c.flags...)...)
		code := map[string]int{"done": cli.ExitDone, "refused": cli.ExitRefused}[c.code]
		if got.Code != code || !strings.Contains(got.Stdout+got.Stderr, c.says) {
			t.Errorf("%q: %+v, want %s and %s", c.flags, got, c.code, c.says)
		}
	}
	text, err := os.ReadFile(save)
	if want := base64.StdEncoding.EncodeToString(roottest.OrderValue('z', 9)); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the stored plan is %s, %v, want one with %s", text, err, want)
	}
	without := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Dial: b.Dial}
	roottest.Prints(t, without.Run(t, "plan", "orders.dlq", "--patch", "{}"), cli.ExitRefused, "", "the edit can't be applied to any value")
}
