package integration_test

import (
	"os"
	"testing"

	"github.com/sidingkafka/siding/integration"
)

// shared serves the tests that break nothing, and denying those that forbid something. Tests that
// break brokers start a cluster of their own.
var shared integration.Shared

func TestMain(m *testing.M) { os.Exit(max(shared.Run(m), denying.Close())) }
