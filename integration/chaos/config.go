package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/check"
)

// The kinds of brokers that a run can use.
const (
	BrokerEmbedded = "kfake" // the embedded broker, three nodes in a process of its own
	BrokerKafka    = "kafka" // three real brokers in containers
	BrokerOwn      = "own"   // the cluster that Config.Kafka names
)

// Config configures a run. Every field has a default, which zero means.
type Config struct {
	// Seed decides everything that is random: services, records, scripts, and the schedule of the
	// faults. Default: one from the clock.
	Seed uint64
	// Duration is how long faults are injected. The run then heals everything, waits until all
	// records have been dealt with, and checks. Default 2 m.
	Duration time.Duration
	// Rate is the number of records a second that are written, over all topics. Default 2,000.
	Rate int
	// Broker is BrokerEmbedded, BrokerKafka or BrokerOwn. Default BrokerEmbedded.
	Broker string
	// Kafka are the options of clients for BrokerOwn: brokers, TLS, SASL. The run creates topics
	// whose names begin with "chaos-", and deletes none. It can inject only what needs no access to
	// the brokers' machines.
	Kafka []kgo.Opt
	// Only are the names of the faults to inject, as Faults lists them; "none" alone injects none.
	// Default all that the brokers allow.
	Only []string

	// Poisons is the number of records, among the first of a run, that kill the process that runs
	// them, each time: in the handler, while they are decoded, or when they are tried again. They
	// belong in the dead-letter topic, with reason crash-loop. Default 3 for even seeds, and none
	// for odd ones, in which a member has to live long; negative means none.
	Poisons int

	// Handler is called for each run whose script lets the record pass. Its error counts as it does
	// for any consumer; the checker then does not know what the record's end should be, and checks
	// only that it has exactly one. Default: a handler that returns nil.
	Handler consumer.Handler
	// Value returns key and value of the n-th record of a topic. Default: a key of one of 40 per
	// partition, sometimes none, and a short text.
	Value func(n int) (key, value []byte)
	// Consumer changes the configuration of each consumer before it starts. It must keep the group,
	// the topics, and the handler that it finds, which calls Handler. Default: no change.
	Consumer func(*consumer.Config)

	// Dir is where journals, logs and the embedded broker's data go. Default: a new folder, which
	// is removed if no promise was broken.
	Dir string
	// Results is a file to which the run appends its line. Default none.
	Results string
	// Commit names the code in that line. Default empty.
	Commit string
	// Log receives the progress. Default os.Stderr.
	Log io.Writer

	// defect is of tests: it changes what a broker or a member does, to see that the checker finds
	// that.
	defect string
	// margin is how long a run has no faults at its beginning, and at its end. Default 5 s.
	margin time.Duration
	// settles is how long a floor may stand still at the end, besides the longest wait in tiers.
	// Default check.SettleTime.
	settles time.Duration
	// recovers is how long a topic may need after an outage. Default check.RecoverTime.
	recovers time.Duration
}

// noFault is the name of no fault.
const noFault = "none"

func (cfg Config) withDefaults() Config {
	cfg.Seed = cmp.Or(cfg.Seed, uint64(time.Now().UnixNano())%1e9)
	cfg.Duration = cmp.Or(cfg.Duration, 2*time.Minute)
	cfg.Rate = cmp.Or(cfg.Rate, 2000)
	cfg.Broker = cmp.Or(cfg.Broker, BrokerEmbedded)
	cfg.margin = cmp.Or(cfg.margin, 5*time.Second)
	cfg.settles = cmp.Or(cfg.settles, check.SettleTime)
	cfg.recovers = cmp.Or(cfg.recovers, check.RecoverTime)
	if cfg.Log == nil {
		cfg.Log = os.Stderr
	}
	return cfg
}

// validate reports all problems at once. These are the faults that there are.
func (cfg Config) validate(faults []string) error {
	var all []error
	if !slices.Contains([]string{BrokerEmbedded, BrokerKafka, BrokerOwn}, cfg.Broker) {
		all = append(all, fmt.Errorf("broker %q: %s, %s or %s", cfg.Broker, BrokerEmbedded, BrokerKafka, BrokerOwn))
	}
	if cfg.Broker == BrokerOwn && len(cfg.Kafka) == 0 {
		all = append(all, errors.New("broker own: name your brokers in Kafka, with kgo.SeedBrokers(…)"))
	}
	if cfg.Duration < 0 {
		all = append(all, fmt.Errorf("the duration is %v: it must be positive, or zero for the default", cfg.Duration))
	}
	if cfg.Rate < 0 {
		all = append(all, fmt.Errorf("the rate is %d: it must be positive, or zero for the default", cfg.Rate))
	}
	for _, name := range cfg.Only {
		if !slices.Contains(faults, name) && !(name == noFault && len(cfg.Only) == 1) {
			all = append(all, fmt.Errorf("fault %q is unknown: %s", name, strings.Join(faults, ", ")))
		}
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("chaos: invalid configuration:\n%w", err)
	}
	return nil
}
