package chaos_test

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos"
)

// billing is a team's own package.
var billing struct {
	Handle  func(context.Context, *kgo.Record) error
	Example func(n int) (key, value []byte)
}

// A team runs the suite on its own cluster, against its own handler.
func ExampleMain() {
	main := func() {
		os.Exit(chaos.Main(chaos.Config{
			Broker:  chaos.BrokerOwn,
			Kafka:   []kgo.Opt{kgo.SeedBrokers("localhost:9092")},
			Handler: billing.Handle,
			Value:   billing.Example,
		}))
	}
	_ = main
	fmt.Println("go run ./chaos -duration 10m")
	// Output: go run ./chaos -duration 10m
}
