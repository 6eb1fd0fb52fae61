package integration_test

import (
	"os"
	"testing"

	"github.com/sidingkafka/siding/integration"
)

// shared serves the tests that break nothing. Tests that break brokers start a cluster of their
// own.
var shared integration.Shared

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m))
}
