package integration_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/integration"
)

// t stands for the parameter of a test.
var t *testing.T

// The test has a cluster of its own, which is removed when the test ends. consumertest makes the
// same assertions on it as on the embedded broker. See examples/realkafka for a suite.
func ExampleStartKafka() {
	kafka := integration.StartKafka(t, integration.WithConfig("log.retention.check.interval.ms", "1000"))
	k := consumertest.On(t, kafka.Opts()...)
	k.CreateTopic("orders", 3)
}

// A cluster of three brokers works on while one of them is down.
func ExampleKafka_Kill() {
	kafka := integration.StartKafka(t, integration.WithBrokers(3))
	k := consumertest.On(t, kafka.Opts()...)
	k.CreateTopic("orders", 3)
	kafka.Kill(t, 2)
	k.Produce(&kgo.Record{Topic: "orders", Value: []byte("order-7")})
	kafka.Restart(t, 2)
}

// A paused broker keeps its connections and does not answer, as in a long garbage collection.
func ExampleKafka_Pause() {
	kafka := integration.StartKafka(t)
	kafka.Pause(t, 1)
	kafka.Unpause(t, 1)
}

// One cluster for all tests of a package: its TestMain is os.Exit(cluster.Run(m)).
func ExampleShared() {
	var cluster integration.Shared
	_ = func(m *testing.M) int { return cluster.Run(m) } // TestMain

	k := consumertest.On(t, cluster.Kafka(t).Opts()...)
	k.CreateTopic("orders-of-this-test", 3)
}
