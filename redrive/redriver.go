package redrive

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

// Config says how a Redriver reaches its cluster, and who redrives.
type Config struct {
	// Kafka has the options of all clients: brokers, TLS, SASL and the like.
	Kafka []kgo.Opt
	// Naming are the templates of the siblings' names; zero is the library's default.
	Naming retrytopics.Naming
	// By and Why are the operator's words, kept with the run and in the ledger. By is required.
	By, Why string
	// MergePatch applies an RFC 7396 merge patch; it is required for Edit.Patch only.
	MergePatch func(value, patch []byte) ([]byte, error)
	// MaxBufferedBytes bounds the letters that a run has in memory: those that are read and not
	// committed yet; 64 MiB by default.
	MaxBufferedBytes int64
	// Logger gets what an operator need not see; nil discards it.
	Logger *slog.Logger
}

const defaultMaxBufferedBytes = 64 << 20

// Redriver plans and runs redrives. It has no state of its own, and its methods can
// be used concurrently; each has clients of its own for as long as it runs.
type Redriver struct {
	cfg   Config
	log   *slog.Logger
	owner string
}

// New checks the configuration. It does no I/O.
func New(cfg Config) (*Redriver, error) {
	var errs []error
	if cfg.By == "" {
		errs = append(errs, errors.New("there is no By: say who redrives"))
	}
	if err := cfg.Naming.Validate(); err != nil {
		errs = append(errs, err)
	}
	if cfg.MaxBufferedBytes < 0 {
		errs = append(errs, fmt.Errorf("MaxBufferedBytes is %d: leave it out for %d", cfg.MaxBufferedBytes, defaultMaxBufferedBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redrive: invalid configuration:\n%w", err)
	}
	set(&cfg.MaxBufferedBytes, defaultMaxBufferedBytes)
	r := &Redriver{cfg: cfg, log: cfg.Logger}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	r.owner = fmt.Sprintf("%s on %s, process %d", cfg.By, host, os.Getpid())
	return r, nil
}

// readLedger reads the ledger of a dead-letter topic to its end. see, if not nil, gets its records.
func (r *Redriver) readLedger(ctx context.Context, t *topics, see func(*dlq.LedgerRecord)) (*dlq.Ledger, error) {
	ledger := dlq.NewLedger(t.dlq, t.ledger, r.cfg.Kafka...)
	err := ledger.Read(ctx, nil, see)
	return ledger, permission.Denied("READ", "topic", t.ledger, err)
}

// token is a name that nothing else has.
func token(n int) string {
	b := make([]byte, n)
	rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// newID is the id of a run: when it was planned, for people, and something that no other run has.
func newID(at time.Time) string { return at.UTC().Format("20060102-150405") + "-" + token(3) }

// topicsOf finds the topics around a dead-letter topic by the naming templates. Where only the
// ledger's has {group}, the groups that letters are selected by say which one.
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
