package retrytopics

import (
	"strings"
	"testing"
)

func TestSiblings_CollidingTopicsAreRefusedTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []Siblings
		want []string
	}{
		{"two sources", []Siblings{
			mustSiblings(t, Naming{}, "orders", Default...), mustSiblings(t, Naming{}, "payments", Default...),
		}, nil},
		{"a source twice", []Siblings{
			mustSiblings(t, Naming{}, "orders", Default...), mustSiblings(t, Naming{}, "orders", Default...),
		}, []string{`topic "orders" is given twice`}},
		{"a sibling as source", []Siblings{
			mustSiblings(t, Naming{}, "orders", Default...), mustSiblings(t, Naming{}, "orders.dlq"), mustSiblings(t, Naming{}, "orders.retry.5s"),
		}, []string{`"orders.dlq", a sibling of "orders", is a source itself`, `"orders.retry.5s", a sibling of "orders", is a source itself`}},
		{"a sibling as source, but for a dot", []Siblings{
			mustSiblings(t, Naming{}, "orders", Default...), mustSiblings(t, Naming{}, "orders_dlq"),
		}, []string{`"orders.dlq", a sibling of "orders", is a source itself ("orders_dlq")`}},
		{"sources that differ in a dot", []Siblings{
			mustSiblings(t, Naming{}, "shop.orders", Default...), mustSiblings(t, Naming{}, "shop_orders", Default...),
		}, []string{`"shop.orders" and "shop_orders" differ in '.' and '_' only`, `"shop_orders.retry.5s", a sibling of "shop_orders", collides with "shop.orders.retry.5s"`}},
		{"siblings of two sources", []Siblings{
			{Source: "a", DLQ: "dead", Ledger: "a.ledger"}, {Source: "b", DLQ: "dead", Ledger: "b.ledger"},
		}, []string{`"dead", a sibling of "b", collides with "dead", a sibling of "a"`}},
		{"made by hand", []Siblings{
			{Source: "a", DLQ: "a_dlq", Ledger: "a.dlq", Tiers: []Tier{{0, "a.retry"}}}, {Source: "b"},
		}, []string{`"a.dlq", a sibling of "a", collides with "a_dlq"`, "delay 0s is not positive", `topic "", a sibling of "b": the name is empty`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Check(c.all...)
			if (err != nil) != (c.want != nil) {
				t.Fatalf("Check = %v, want an error: %v", err, c.want != nil)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}
