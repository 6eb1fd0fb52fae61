package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is a cluster that the tests of a package have in common, for those that need a broker and do not mind who else
// uses it. Keep one in a package variable and run the tests through it:
//
//	var shared integration.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestBilling(t *testing.T) { kafka := shared.Kafka(t); … }
//
// The first test that asks for it starts it, so a run that needs no broker starts none. Tests keep apart by the names of
// their topics and groups.
type Shared struct {
	// Options are those of the cluster. Default: none, one broker.
	Options []Option

	once  sync.Once
	kafka *Kafka
	err   error
}

// Kafka returns the cluster and starts it if it is the first call. It skips or fails tb as [StartKafka] does; once a
// start has failed, it fails all others without a further try. It may be called from parallel tests.
func (s *Shared) Kafka(tb testing.TB) *Kafka {
	tb.Helper()
	requireDocker(tb)
	// Not under tb's context: the cluster outlives the test that happens to start it.
	s.once.Do(func() { s.kafka, s.err = start(context.Background(), s.Options) })
	if s.err != nil {
		tb.Fatal(s.err)
	}
	return s.kafka
}

// Run runs the tests, removes the cluster if one was started, and returns the exit code for [os.Exit]; a cluster that
// could not be removed is a failure.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.kafka == nil {
		return code
	}
	if err := s.kafka.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop shared Kafka:", err)
		return max(code, 1)
	}
	return code
}
