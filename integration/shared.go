package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is a cluster that the tests of a package share, if they need a broker and tolerate other
// tests on it. Keep one in a package variable and run the tests through it:
//
//	var shared integration.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestBilling(t *testing.T) { kafka := shared.Kafka(t); … }
//
// The first test that needs the cluster starts it. Tests use different names of topics and groups.
type Shared struct {
	// Options of the cluster. Default: none, so one broker.
	Options []Option

	once  sync.Once
	kafka *Kafka
	err   error
}

// Kafka returns the cluster, and starts it at the first call. It skips or fails tb as [StartKafka]
// does. After a failed start it fails all further tests without another start. It is safe for
// concurrent use.
func (s *Shared) Kafka(tb testing.TB) *Kafka {
	tb.Helper()
	requireDocker(tb)
	// The cluster outlives the test that starts it, so tb's context does not apply.
	s.once.Do(func() { s.kafka, s.err = start(context.Background(), s.Options) })
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.kafka
}

// Run runs the tests, removes the cluster if one was started, and returns the exit code for
// [os.Exit]. A cluster that cannot be removed is a failure.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	return max(code, s.close())
}

// close removes the cluster if one was started, and returns an exit code.
func (s *Shared) close() int {
	if s.kafka == nil {
		return 0
	}
	if err := s.kafka.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop shared Kafka:", err)
		return 1
	}
	return 0
}
