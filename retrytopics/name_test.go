package retrytopics

import (
	"testing"
	"time"
)

func TestName_SaysTheKindOfSibling(t *testing.T) {
	t.Parallel()
	grouped := Naming{Retry: "{group}_{topic}_retry_{delay}", DLQ: "{group}_{topic}_dlq", Ledger: "{group}_{topic}_ledger"}
	for _, c := range []struct {
		naming Naming
		topic  string
		want   Name
	}{
		{Naming{}, "orders.retry.1h30m", Name{Kind: KindRetry, Source: "orders", Delay: 90 * time.Minute}},
		{Naming{}, "orders.dlq", Name{Kind: KindDLQ, Source: "orders"}},
		{Naming{}, "orders.dlq.ledger", Name{Kind: KindLedger, Source: "orders"}},
		{Naming{}, "shop.orders.dlq", Name{Kind: KindDLQ, Source: "shop.orders"}},
		{Naming{}, "orders.dlq.dlq", Name{Kind: KindDLQ, Source: "orders.dlq"}},
		{grouped, "billing_orders_dlq", Name{Kind: KindDLQ, Source: "orders", Group: "billing"}},
		// a ledger of the default naming, not the dead-letter topic of a group "ledger"
		{Naming{Retry: "{topic}.retry.{group}.{delay}", DLQ: "{topic}.dlq.{group}", Ledger: "{topic}.dlq.{group}.ledger"}, "orders.dlq.ledger", Name{Kind: KindLedger, Source: "orders"}},
		{grouped, "billing_orders_retry_5s", Name{Kind: KindRetry, Source: "orders", Group: "billing", Delay: 5 * time.Second}},

		{Naming{}, "orders", Name{}},
		{Naming{}, "orders.retry.60s", Name{}},
		{Naming{}, ".dlq", Name{}},
		{grouped, "billing_shop_orders_dlq", Name{}}, // of "orders", or of "shop_orders"
		{Naming{DLQ: "dlq"}, "dlq", Name{}},
	} {
		got, ok := c.naming.Parse(c.topic)
		if got != c.want || ok != (c.want.Kind != 0) {
			t.Errorf("%+v: Parse(%q) = %+v, %v; want %+v", c.naming, c.topic, got, ok, c.want)
		}
	}
}
