package retrytopics_test

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/retrytopics"
)

// If a dead-letter topic were consumed like a source, its failures would be written back to it.
func ExampleCheck() {
	var all []retrytopics.Siblings
	for _, source := range []string{"orders", "orders.dlq"} {
		s, err := retrytopics.Naming{}.Siblings(source, "billing")
		if err != nil {
			fmt.Println(err)
			return
		}
		all = append(all, s)
	}
	fmt.Println(retrytopics.Check(all...))
	// Output: topic "orders.dlq", a sibling of "orders", is a source itself ("orders.dlq"): consume the source only, its siblings follow
}

func ExampleFormatDelay() {
	fmt.Println(retrytopics.FormatDelay(90*time.Minute), retrytopics.FormatDelay(1500*time.Millisecond))
	// Output: 1h30m 1.5s
}

// Only the form that FormatDelay writes is a delay, so each name has one reading.
func ExampleParseDelay() {
	for _, s := range []string{"1h30m", "90m", "orders"} {
		d, ok := retrytopics.ParseDelay(s)
		fmt.Println(s, d, ok)
	}
	// Output:
	// 1h30m 1h30m0s true
	// 90m 0s false
	// orders 0s false
}

// The schedules, with the names that their tiers get.
func Example_schedules() {
	for _, schedule := range [][]time.Duration{
		retrytopics.Default, retrytopics.Aggressive, retrytopics.Standard, retrytopics.Patient, retrytopics.Cautious,
	} {
		s, err := retrytopics.Naming{}.Siblings("orders", "billing", schedule...)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Tiers)
	}
	// Output:
	// [{5s orders.retry.5s} {30s orders.retry.30s} {5m0s orders.retry.5m}]
	// [{10s orders.retry.10s} {1m0s orders.retry.1m} {5m0s orders.retry.5m}]
	// [{1m0s orders.retry.1m} {30m0s orders.retry.30m} {3h0m0s orders.retry.3h}]
	// [{5m0s orders.retry.5m} {1h0m0s orders.retry.1h} {6h0m0s orders.retry.6h}]
	// [{1m0s orders.retry.1m} {10m0s orders.retry.10m} {1h0m0s orders.retry.1h} {4h0m0s orders.retry.4h} {12h0m0s orders.retry.12h}]
}

// A tool that sees only a cluster finds the source of each sibling.
func ExampleNaming_SourceOf() {
	var naming retrytopics.Naming
	for _, topic := range []string{"orders.retry.30s", "orders.dlq", "orders.dlq.ledger", "orders"} {
		fmt.Println(naming.SourceOf(topic))
	}
	// Output:
	// orders true
	// orders true
	// orders true
	//  false
}

func ExampleNaming_TierOf() {
	fmt.Println(retrytopics.Naming{}.TierOf("orders.retry.30s", "orders", "billing"))
	fmt.Println(retrytopics.Naming{}.TierOf("orders.dlq", "orders", "billing"))
	// Output:
	// 30s true
	// 0s false
}

// The tiers that a former configuration left behind are found among all topics of the cluster.
func ExampleNaming_TiersAmong() {
	topics := []string{"orders", "orders.dlq", "orders.retry.1m", "orders.retry.5s", "payments.retry.5s"}
	for _, tier := range (retrytopics.Naming{}).TiersAmong(topics, "orders", "billing") {
		fmt.Println(tier.Delay, tier.Topic)
	}
	// Output:
	// 5s orders.retry.5s
	// 1m0s orders.retry.1m
}

// Names must be readable backwards.
func ExampleNaming_Validate() {
	naming := retrytopics.Naming{Retry: "retry.{delay}", DLQ: "{topic}{group}.dlq"}
	fmt.Println(naming.Validate())
	// Output:
	// naming Retry "retry.{delay}": {topic} must occur once
	// naming DLQ "{topic}{group}.dlq": {topic} and {group} need text between them, or a name cannot be read backwards
}

func ExampleSiblings_Topics() {
	s, _ := retrytopics.Naming{}.Siblings("orders", "billing", time.Minute)
	fmt.Println(s.Topics())
	// Output: [orders.retry.1m orders.dlq orders.dlq.ledger]
}

// Doubling reaches the longest delay with the seventh tier. A policy that asks for more attempts
// than that repeats it.
func ExampleExponential() {
	webhooks, err := retrytopics.Naming{}.Siblings("webhooks", "partners", retrytopics.Exponential(time.Minute, time.Hour, 12)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tier := range webhooks.Tiers {
		fmt.Println(tier.Topic)
	}
	// Output:
	// webhooks.retry.1m
	// webhooks.retry.2m
	// webhooks.retry.4m
	// webhooks.retry.8m
	// webhooks.retry.16m
	// webhooks.retry.32m
	// webhooks.retry.1h
}
