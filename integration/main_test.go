package integration_test

import (
	"os"
	"testing"
	"time"

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

// eventually waits until there is no error, and ends the test with the last one after a time.
func eventually(t *testing.T, within time.Duration, is func() error) {
	t.Helper()
	err := is()
	for deadline := time.Now().Add(within); err != nil; err = is() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", within, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
