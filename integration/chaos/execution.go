package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// execution is a run while it goes on.
type execution struct {
	cfg     Config
	plan    plan
	brokers brokers.Cluster
	crew    *crew
	cl      *kgo.Client
	adm     *kadm.Client
	load    *load
	sampler *sampler
	mark    string // in records
	samples *os.File
	healing context.Context // ends when faults have to end
	heal    context.CancelFunc
	failing context.Context // ends when outages have to end

	nodes   sync.Mutex // held while a broker is away
	growing sync.Mutex // held while a topic gets partitions
	outages sync.Mutex // held while a service's runs fail
	// Held for writing while all brokers end, and for reading while transactions of redrive may be
	// open. The embedded broker aborts these at its next start without a marker in the log, so that
	// a reader never comes to its end.
	transactions sync.RWMutex

	mu      sync.Mutex
	faults  map[string]int
	windows []trace.Window
}

// direct are options of clients that no fault of the network reaches.
func (e *execution) direct() []kgo.Opt {
	return append(e.brokers.Options(true), kgo.MetadataMinAge(250*time.Millisecond))
}

func (e *execution) logf(format string, args ...any) {
	fmt.Fprintf(e.cfg.Log, "chaos: "+format+"\n", args...)
}

func (e *execution) close() {
	e.heal()
	e.crew.close()
	e.samples.Close()
	e.cl.Close()
	e.load.cl.Close()
	if err := e.brokers.Close(); err != nil {
		e.logf("ending the brokers: %v", err)
	}
}

// rest waits for a random time, or until the run is being healed.
func (e *execution) rest(rnd *rand.Rand, least, most time.Duration) {
	rest(e.healing, rnd, least, most)
}

func rest(ctx context.Context, rnd *rand.Rand, least, most time.Duration) {
	wait(ctx, least+time.Duration(rnd.Int64N(int64(most-least))))
}

// wait waits, and reports whether all of the time passed before the run was being healed.
func (e *execution) wait(d time.Duration) bool { return wait(e.healing, d) }

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// try logs an error of a fault that could not be injected.
func (e *execution) try(err error) {
	if err != nil && e.healing.Err() == nil {
		e.logf("a fault could not be injected: %v", err)
	}
}

// whileAnswering makes the brokers answer with a fault for a random time.
func (e *execution) whileAnswering(f brokers.Fault, rnd *rand.Rand, least, most time.Duration) {
	heal, err := e.brokers.Answer(f)
	e.whileFaulty(heal, err, rnd, least, most)
}

// healsWithin is how long a fault is healed again and again, if the brokers do not answer.
const healsWithin = 2 * time.Minute

// whileFaulty waits for a random time with a fault of the brokers, and heals it: also one that they
// answered with an error, since they may have obeyed.
func (e *execution) whileFaulty(heal func() error, err error, rnd *rand.Rand, least, most time.Duration) {
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if e.try(err); err == nil {
		e.rest(rnd, least, most)
	}
	for end := time.Now().Add(healsWithin); ; <-time.After(time.Second) {
		switch err = heal(); {
		case err == nil:
			return
		case time.Now().After(end):
			e.logf("a fault could not be healed: %v", err)
			return
		}
	}
}
