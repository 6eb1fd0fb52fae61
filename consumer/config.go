package consumer

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/retrytopics"
)

// Config says what to consume and what to do with what fails. Group, Topics, Kafka and Handler are
// required; everything else has a default. Zero means the default, negative means none.
type Config struct {
	// Group is the consumer group.
	Group string
	// FormerGroups are names that the group had before, the latest first. Where the group has no
	// offset on a partition, of a source or of a retry topic, it goes on where a former one left
	// off, the first of these that has an offset there; records that a former one parked are
	// retried, by this group from then on. A former group must have no members any more: both would
	// run the same records, and the log says so. A name can be taken out when the group has offsets
	// on every partition and the former one's retry topics are empty; the last one, though, is in
	// every [Delivery.IdempotencyKey], and stays for as long as these are compared. Default none.
	FormerGroups []string
	// Topics are the source topics. Their retry topics follow by themselves. Regular expressions
	// are not offered.
	Topics []string
	// Kafka are options for the clients that siding makes: brokers, TLS, SASL, tuning. Options that
	// siding owns are refused.
	Kafka []kgo.Opt
	// Handler handles each record.
	Handler Handler

	// Order says which records may run at the same time. Default OrderPartition.
	Order Order
	// Concurrency bounds the handlers that run at a time in this process. Default no bound under
	// OrderPartition, which has one a physical partition anyway, and 64 otherwise.
	Concurrency int

	// Policy says how often a record is tried and where it goes then; Policies does so for single
	// topics, replacing Policy whole.
	Policy   Policy
	Policies map[string]Policy
	// Classifier says what an error means. Default: the built-in rules, unknown errors terminal.
	Classifier classify.Classifier

	// Naming names the retry, dead-letter and ledger topics. Default {topic}.retry.{delay},
	// {topic}.dlq, {topic}.dlq.ledger. Where several groups consume a topic, put {group} in.
	Naming retrytopics.Naming
	// Provision says what to do about siblings that are missing. Default: create them.
	Provision retrytopics.Spec

	// Start says where a source partition begins that the group has no offset on; one that is added
	// later begins at its start. Default StartEarliest.
	Start Start

	// CommitInterval is how often finished offsets are committed. Default 1 s.
	CommitInterval time.Duration
	// DrainTimeout is how long running handlers and copies on their way have when a partition is
	// given up. Together with the last commit it must stay under the rebalance timeout
	// (kgo.RebalanceTimeout, 60 s by default). Default 20 s.
	DrainTimeout time.Duration

	// MaxInFlight bounds the records that a lane holds ready, and likewise its copies on their way.
	// Default 10,000. A lane that was just assigned has eight copies on their way at most, and
	// twice as many with each that is acknowledged, up to this bound.
	MaxInFlight int
	// MaxInFlightBytes bounds the bytes of records held ready, and of copies on their way, in this
	// process; each lane has its share. One fetch of each partition may come on top. Default 64
	// MiB.
	MaxInFlightBytes int64
	// MaxParkedBytes bounds the bytes of records held in memory that wait for their time, packed.
	// Of more, those due last are only remembered, and fetched again before they are due. Each
	// retry partition has room for its next record, and an answer of 2 MiB from each broker may
	// come on top, and the headers of records that handlers run, unpacked. A record that was
	// fetched again carries no context from hooks in Kafka (kgo.WithHooks), which saw it the first
	// time only. Default 64 MiB.
	MaxParkedBytes int64

	// ErrorText is what of an error is written to headers, logs and spans: the place to redact.
	// Default its message.
	ErrorText func(error) string

	// Hooks are told of dead letters, parked and discarded records, and states of lanes; see
	// [Hook]. Default none.
	Hooks []Hook

	// Version and Environment say who failed a record, in its headers. Default empty.
	Version, Environment string
	// TracerProvider makes a span of each attempt, linked to the producer's and to the last
	// attempt's; MeterProvider takes the metrics. Default: OpenTelemetry's global ones, as they are
	// when Run is called.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Logger takes siding's and the clients' messages, never payloads. Default slog.Default().
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	if cfg.Order != OrderPartition {
		def(&cfg.Concurrency, 64)
	}
	cfg.Concurrency = max(cfg.Concurrency, 0)
	def(&cfg.CommitInterval, time.Second)
	def(&cfg.DrainTimeout, 20*time.Second)
	def(&cfg.MaxInFlight, 10_000)
	def(&cfg.MaxInFlightBytes, 64<<20)
	def(&cfg.MaxParkedBytes, 64<<20)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}

// policyOf is the policy of a topic.
func (cfg Config) policyOf(topic string) Policy {
	if p, ok := cfg.Policies[topic]; ok {
		return p.withDefaults()
	}
	return cfg.Policy.withDefaults()
}

// validate reports everything that is wrong at once, and names the siblings.
func (cfg Config) validate() (map[string]retrytopics.Siblings, error) {
	var all []error
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if cfg.Group == "" {
		add("Group is empty")
	}
	if !utf8.ValidString(cfg.Group) {
		add("Group %q is not UTF-8", cfg.Group)
	}
	for i, former := range cfg.FormerGroups {
		switch {
		case former == "":
			add("FormerGroups has an empty name")
		case !utf8.ValidString(former):
			add("FormerGroups has %q, which is not UTF-8", former)
		case former == cfg.Group:
			add("FormerGroups has %q, which is Group", former)
		case slices.Contains(cfg.FormerGroups[:i], former):
			add("FormerGroups has %q twice", former)
		}
	}
	if cfg.Handler == nil {
		add("Handler is nil")
	}
	if len(cfg.Topics) == 0 {
		add("Topics is empty")
	}
	if cfg.Order > OrderNone {
		add("Order is %v: OrderPartition, OrderKey or OrderNone", cfg.Order)
	}
	for _, d := range []struct {
		name string
		v    int64
	}{
		{"CommitInterval", int64(cfg.CommitInterval)},
		{"DrainTimeout", int64(cfg.DrainTimeout)},
		{"MaxInFlight", int64(cfg.MaxInFlight)},
		{"MaxInFlightBytes", cfg.MaxInFlightBytes},
		{"MaxParkedBytes", cfg.MaxParkedBytes},
	} {
		if d.v <= 0 {
			add("%s must be positive, or zero for the default", d.name)
		}
	}
	all = append(all, cfg.Policy.withDefaults().problems("Policy")...)
	seen := map[string]bool{}
	for _, t := range cfg.Topics {
		seen[t] = true
	}
	for t, p := range cfg.Policies {
		if !seen[t] {
			add("Policies has %q, which is not among Topics", t)
		}
		all = append(all, p.withDefaults().problems(fmt.Sprintf("Policies[%q]", t))...)
	}
	siblings, err := cfg.siblings()
	all = append(all, err)
	if err == nil {
		all = append(all, cfg.provisionProblems(siblings)...)
	}
	for i, hook := range cfg.Hooks {
		switch hook.(type) {
		case HookDeadLettered, HookParked, HookDiscarded, HookLaneState:
		default:
			add("Hooks[%d]: %T has none of the methods of a hook; where they have a pointer receiver, pass a pointer", i, hook)
		}
	}
	all = append(all, clientProblems(cfg)...)
	return siblings, errors.Join(all...)
}

// provisionProblems lists what is wrong with Provision, and the waits that a handler may ask for
// but no tier keeps a record for.
func (cfg Config) provisionProblems(siblings map[string]retrytopics.Siblings) (all []error) {
	if err := cfg.Provision.Validate(slices.Collect(maps.Values(siblings))...); err != nil {
		return []error{fmt.Errorf("the spec in Provision: %w", err)}
	}
	for t, s := range siblings {
		p := cfg.policyOf(t)
		for _, tier := range s.Tiers {
			if keeps := cfg.Provision.RetentionOf(tier.Delay); keeps > 0 && p.MaxRetryAfter > keeps {
				all = append(all, fmt.Errorf("the policy of %q: MaxRetryAfter is %v, but %s keeps a record for %v: lower it, or raise Provision.TierRetention",
					t, p.MaxRetryAfter, tier.Topic, keeps))
			}
		}
	}
	return all
}

// siblings names the siblings of every topic.
func (cfg Config) siblings() (map[string]retrytopics.Siblings, error) {
	if err := cfg.Naming.Validate(); err != nil {
		return nil, fmt.Errorf("the templates in Naming: %w", err)
	}
	named := map[string]retrytopics.Siblings{}
	var all []retrytopics.Siblings
	var problems []error
	for _, t := range cfg.Topics {
		group := cfg.Group
		if group == "" {
			// its absence is said elsewhere, and the names' other problems are worth saying too
			group = "group"
		}
		s, err := cfg.Naming.Siblings(t, group, cfg.policyOf(t).Tiers...)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		named[t] = s
		all = append(all, s)
	}
	problems = append(problems, retrytopics.Check(all...))
	return named, errors.Join(problems...)
}
