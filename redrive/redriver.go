package redrive

// The API, one file an operation.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/retrytopics"
)

// Config holds a Redriver's connection to its cluster.
type Config struct {
	// Kafka are the options of all clients: brokers, TLS, SASL and the like.
	Kafka []kgo.Opt
	// Naming holds the templates of the siblings' names; the zero value is the library's default.
	Naming retrytopics.Naming
	// Values reads and writes values that a schema describes, so that edits are of their JSON. Nil
	// edits values as they are.
	Values Values
	// MaxBufferedBytes bounds the memory for letters that a run has read and not yet committed; 64
	// MiB by default.
	MaxBufferedBytes int64
	// Logger gets details that an operator need not see; nil discards them.
	Logger *slog.Logger
}

const defaultMaxBufferedBytes = 64 << 20

// Redriver plans and runs redrives. It keeps no state between calls, and its methods can be used
// concurrently. Each call creates its own clients and closes them at its end.
type Redriver struct {
	cfg  Config
	log  *slog.Logger
	host string
}

// New checks the configuration and returns all its errors. It does no I/O.
func New(cfg Config) (*Redriver, error) {
	var errs []error
	if err := cfg.Naming.Validate(); err != nil {
		errs = append(errs, err)
	}
	if cfg.MaxBufferedBytes < 0 {
		errs = append(errs, fmt.Errorf("MaxBufferedBytes is %d: leave it at 0 for the default of %d", cfg.MaxBufferedBytes, defaultMaxBufferedBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redrive: invalid configuration:\n%w", err)
	}
	set(&cfg.MaxBufferedBytes, defaultMaxBufferedBytes)
	r := &Redriver{cfg: cfg, log: cfg.Logger}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.host, err = os.Hostname(); err != nil {
		r.host = "?"
	}
	return r, nil
}

// owner returns the name of this process in the records of a run.
func (r *Redriver) owner(by string) string {
	return fmt.Sprintf("%s on %s, process %d", by, r.host, os.Getpid())
}

// readLedger reads the ledger of a dead-letter topic to its end. It passes each record to see,
// unless see is nil.
func (r *Redriver) readLedger(ctx context.Context, t *topics, see func(*dlq.LedgerRecord)) (*dlq.Ledger, error) {
	ledger := dlq.NewLedger(t.dlq, t.ledger, r.cfg.Kafka...)
	err := ledger.Read(ctx, nil, see)
	return ledger, permission.Denied("READ", "topic", t.ledger, err)
}

// token returns n random bytes in hex.
func token(n int) string {
	b := make([]byte, n)
	rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// newID returns the id of a run: the time of its plan, for people, and a random suffix.
func newID(at time.Time) string { return at.UTC().Format("20060102-150405") + "-" + token(3) }

// topicsOf derives the topics around a dead-letter topic from the naming templates. If only the
// ledger's template has {group}, the selected groups decide which ledger is meant.
func (r *Redriver) topicsOf(dlqTopic string, groups []string) (*topics, error) {
	name, ok := r.cfg.Naming.Parse(dlqTopic)
	if !ok || name.Kind != retrytopics.KindDLQ {
		return nil, fmt.Errorf("redrive: %q is not the dead-letter topic of a source by the naming templates", dlqTopic)
	}
	source := name.Source
	for _, group := range append([]string{name.Group}, groups...) {
		if s, err := r.cfg.Naming.Siblings(source, group); err == nil && s.DLQ == dlqTopic {
			return &topics{naming: r.cfg.Naming, dlq: dlqTopic, source: source, ledger: s.Ledger}, nil
		}
	}
	return nil, fmt.Errorf("redrive: %q is not the dead-letter topic of %q by the naming templates", dlqTopic, source)
}
