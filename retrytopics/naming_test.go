package retrytopics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNaming_DefaultNamesAreAPromise(t *testing.T) {
	t.Parallel()
	s, err := Naming{}.Siblings("orders", "billing", 5*time.Second, 30*time.Second, 5*time.Minute, 90*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"orders.retry.5s", "orders.retry.30s", "orders.retry.5m", "orders.retry.1h30m", "orders.dlq", "orders.dlq.ledger"}
	if got := s.Topics(); !slices.Equal(got, want) {
		t.Errorf("topics = %q, want %q", got, want)
	}
}

func TestNaming_EachNameReadsBackwards(t *testing.T) {
	t.Parallel()
	namings := []Naming{
		{},
		{Retry: "{topic}.retry.{group}.{delay}", DLQ: "{topic}.dlq.{group}", Ledger: "{topic}.dlq.{group}.ledger"},
		{Retry: "{topic}.{group}.{delay}", DLQ: "{topic}.{group}.dlq", Ledger: "{topic}.{group}.ledger"},
		{Retry: "retry-{delay}-{topic}", DLQ: "dlq-{topic}", Ledger: "ledger-{topic}"},
		{Retry: "{group}--{topic}--{delay}", DLQ: "{group}--{topic}--dlq", Ledger: "{group}--{topic}--ledger"},
	}
	name := rapid.StringMatching(`([a-c.]|\.retry\.|\.dlq|\.ledger|5s|--?){1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom(namings).Draw(t, "naming")
		source, group := name.Draw(t, "source"), name.Draw(t, "group")
		ms := rapid.SliceOfNDistinct(rapid.Int64Range(1, 1e9), 0, 4, rapid.ID).Draw(t, "delays")
		slices.Sort(ms)
		var delays []time.Duration
		for _, m := range ms {
			delays = append(delays, time.Duration(m)*time.Millisecond)
		}
		s, err := n.Siblings(source, group, delays...)
		if err != nil {
			t.Skip("the naming refuses this source: draw another")
		}
		for _, topic := range s.Topics() {
			if got, ok := n.SourceOf(topic); !ok || got != source {
				t.Errorf("SourceOf(%q) = %q, %v, want %q", topic, got, ok, source)
			}
		}
		if got := n.TiersAmong(s.Topics(), source, group); !slices.Equal(got, s.Tiers) {
			t.Errorf("TiersAmong = %v, want %v", got, s.Tiers)
		}
	})
}

func TestNaming_SourceOfRefusesOtherTopics(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{
		"", "orders", ".dlq", "orders.retry.", "orders.retry.60s", "orders.retry.soon", "orders.retry.5s ", "orders.dlq2",
		"or ders.dlq", strings.Repeat("x", 300) + ".dlq",
	} {
		if got, ok := (Naming{}).SourceOf(topic); ok {
			t.Errorf("SourceOf(%q) = %q, want none", topic, got)
		}
	}
	byGroup := Naming{DLQ: "{topic}.{group}.dlq"}
	if got, ok := byGroup.SourceOf("shop.orders.billing.dlq"); ok {
		t.Errorf("SourceOf of an ambiguous name = %q, want none", got)
	}
	if got, ok := (Naming{DLQ: "{topic}"}).SourceOf("orders.dlq"); ok {
		t.Errorf("SourceOf with an invalid naming = %q, want none", got)
	}
}

func TestNaming_FindsATierThatLeftTheConfiguration(t *testing.T) {
	t.Parallel()
	byGroup := Naming{Retry: "{topic}.retry.{group}.{delay}"}
	topics := []string{
		"orders", "orders.retry.5m", "orders.retry.1.5s", "orders.retry.10s", "orders.retry.60s", "orders.dlq",
		"orders.retry.billing.10s", "orders.retry.billing.1.5s", "orders.retry.shipping.5s", "other.retry.5s", "orders.retry.5s.retry.1m",
	}
	for _, c := range []struct {
		n             Naming
		source, group string
		want          []Tier
	}{
		{Naming{}, "orders", "billing", []Tier{{1500 * time.Millisecond, "orders.retry.1.5s"}, {10 * time.Second, "orders.retry.10s"}, {5 * time.Minute, "orders.retry.5m"}}},
		{byGroup, "orders", "billing", []Tier{{1500 * time.Millisecond, "orders.retry.billing.1.5s"}, {10 * time.Second, "orders.retry.billing.10s"}}},
		{byGroup, "orders", "shipping", []Tier{{5 * time.Second, "orders.retry.shipping.5s"}}},
		{Naming{}, "orders.retry.5s", "", []Tier{{time.Minute, "orders.retry.5s.retry.1m"}}},
		{Naming{}, "payments", "", nil},
		{Naming{Retry: "{delay}"}, "orders", "", nil},
	} {
		if got := c.n.TiersAmong(topics, c.source, c.group); !slices.Equal(got, c.want) {
			t.Errorf("TiersAmong(%q, %q) with %+v = %v, want %v", c.source, c.group, c.n, got, c.want)
		}
	}
}

func TestNaming_RefusesInvalidNamesWithEachReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 240)
	for _, c := range []struct {
		n             Naming
		source, group string
		delays        []time.Duration
		want          []string
	}{
		{Naming{}, long, "g", []time.Duration{time.Second}, []string{"249", "251 characters"}},
		{Naming{}, "", "g", nil, []string{"empty"}},
		{Naming{}, "..", "g", nil, []string{"reserved"}},
		{Naming{}, "or/ders", "g", nil, []string{`"/"`}},
		{Naming{DLQ: "{topic}.dlq.{group}"}, "orders", "team billing", nil, []string{`" "`, "orders.dlq.team billing"}},
		{Naming{DLQ: "{topic}.dlq.{group}"}, "orders", "", nil, []string{"the group is empty"}},
		{Naming{DLQ: "{topic}.{group}.dlq"}, "shop.orders", "billing", nil, []string{"reads backwards", `"shop" "shop.orders"`}},
		{Naming{DLQ: "{topic}.dlq.{group}", Ledger: "{topic}.dlq.{group}.log"}, "orders", "ledger", nil, []string{`topic "orders.dlq.ledger" of source "orders" has the name of a ledger by the default naming`}},
		{Naming{}, "orders", "g", []time.Duration{time.Second, time.Second, -time.Second, 1500 * time.Microsecond}, []string{
			"tier 2, 1s, is not longer", "tier 3: delay -1s is not positive", "tier 4: delay 1.5ms is not a whole number",
		}},
		{Naming{}, "orders", "g", []time.Duration{1 << 62}, []string{"tier 1: delay", "is longer than 876000h"}},
		{Naming{}, "orders", "g", []time.Duration{0}, []string{"tier 1: delay 0s is not positive"}},
	} {
		_, err := c.n.Siblings(c.source, c.group, c.delays...)
		if err == nil {
			t.Errorf("Siblings(%q, %q, %v) is accepted", c.source, c.group, c.delays)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Siblings(%q, %q, %v): error %q does not say %q", c.source, c.group, c.delays, err, want)
			}
		}
	}
}

func FuzzNaming_ReadsAnyNameBackwards(f *testing.F) {
	f.Add("{topic}.retry.{delay}", "{topic}.dlq", "orders.retry.5s")
	f.Add("{topic}.{group}.{delay}", "{group}--{topic}", "a.b.c.1h30m")
	f.Add("{topic}{", "}{topic}", "..")
	f.Fuzz(func(t *testing.T, retry, dlq, topic string) {
		n := Naming{Retry: retry, DLQ: dlq}
		source, ok := n.SourceOf(topic)
		if !ok {
			return
		}
		if nameProblem(source) != nil {
			t.Errorf("SourceOf(%q) = %q, which is no name of a topic", topic, source)
		}
		n.TierOf(topic, source, "g")
	})
}

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

func TestTemplate_InvalidIsRefusedWithEachReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    Naming
		want []string
	}{
		{Naming{Retry: "{topic}.retry"}, []string{"Retry", "{delay} must occur once"}},
		{Naming{Retry: "retry.{delay}"}, []string{"{topic} must occur once"}},
		{Naming{Retry: "{topic}{delay}.r"}, []string{"need text between them"}},
		{Naming{Retry: "{topic}.{group}.{group}.{delay}"}, []string{"{group} may occur once at most"}},
		{Naming{DLQ: "{topic}"}, []string{"DLQ", "no text besides the placeholders"}},
		{Naming{DLQ: "{topic}.{delay}.dlq"}, []string{"{delay} belongs in Retry only"}},
		{Naming{DLQ: "{topic}.{tenant}.dlq"}, []string{"unknown placeholder {tenant}"}},
		{Naming{DLQ: "{topic.dlq"}, []string{"a brace is not closed", "{topic} must occur once"}},
		{Naming{DLQ: "{topic}/dlq", Ledger: "{topic} ledger"}, []string{`DLQ "{topic}/dlq"`, `"/"`, `Ledger "{topic} ledger"`}},
		{Naming{Ledger: "{topic}_dlq"}, []string{"DLQ and Ledger give the same name", "differ in '.' and '_'"}},
		{Naming{Ledger: "{topic}.ledger.dlq"}, []string{"Ledger", `["t" "t.ledger"]`}},
	} {
		err := c.n.Validate()
		if err == nil {
			t.Errorf("%+v is accepted", c.n)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %q does not say %q", c.n, err, want)
			}
		}
		if _, err := c.n.Siblings("orders", "g"); err == nil {
			t.Errorf("%+v: Siblings accepts what Validate refuses", c.n)
		}
	}
}

func TestFormatDelay_IsWrittenInItsShortestForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{time.Millisecond, "1ms"},
		{1500 * time.Millisecond, "1.5s"},
		{5 * time.Second, "5s"},
		{10 * time.Minute, "10m"},
		{60*time.Second + 500*time.Millisecond, "1m0.5s"},
		{time.Hour, "1h"},
		{10 * time.Hour, "10h"},
		{90 * time.Minute, "1h30m"},
		{time.Hour + 5*time.Second, "1h5s"},
		{time.Hour + 500*time.Millisecond, "1h0.5s"},
		{time.Hour + 10*time.Minute + 10*time.Second, "1h10m10s"},
		{100 * time.Hour, "100h"},
	} {
		if got := FormatDelay(c.d); got != c.want {
			t.Errorf("FormatDelay(%d) = %q, want %q", c.d, got, c.want)
		}
		if got, ok := ParseDelay(c.want); !ok || got != c.d {
			t.Errorf("ParseDelay(%q) = %v, %v, want %v", c.want, got, ok, c.d)
		}
	}
	for _, s := range []string{"", "5", "60s", "0s", "-5s", "+5s", "5m0s", "1us", "1.5ms", "05s", "5s ", "1h0m", "999999999h", "2000000h"} {
		if d, ok := ParseDelay(s); ok {
			t.Errorf("ParseDelay(%q) = %v, want none", s, d)
		}
	}
}

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
