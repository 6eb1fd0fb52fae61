package integration_test

import (
	"os"
	"testing"

	"github.com/sidingkafka/siding/integration"
)

// shared serves the tests that break nothing, and denying those that forbid something. Tests that
// break brokers start a cluster of their own.
var shared integration.Shared

// long skips a test that takes over half a minute by its nature, unless SIDING_LONG is set.
func long(t *testing.T) {
	t.Helper()
	if !isLong() {
		t.Skip("make integration LONG=1 runs it")
	}
}

func isLong() bool { return os.Getenv("SIDING_LONG") != "" }

func TestMain(m *testing.M) { os.Exit(max(shared.Run(m), denying.Close())) }
