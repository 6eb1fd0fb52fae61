package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/retrytopics"
)

// Config configures a consumer: what it consumes, and what happens to records that fail. Group,
// Topics, Kafka and Handler are required. Every other field has a default, which zero means. A
// negative Concurrency means no bound. [New] refuses other negative numbers.
type Config struct {
	// Group is the consumer group.
	Group string
	// FormerGroups are earlier names of the group, the latest first. If the group has no offset on
	// a partition of a source or a retry topic, it continues from the first former group that has
	// one. It also runs the records that a former group parked.
	//
	// A former group must have no members: both groups would run the same records, and the log
	// reports it. Remove a name once the group has offsets on every partition and the former
	// group's retry topics are empty. The last name is part of every [Delivery.IdempotencyKey];
	// keep it for as long as these keys are compared. Default none.
	FormerGroups []string
	// Topics are the source topics. Their retry topics are consumed too. Regular expressions are
	// not supported.
	Topics []string
	// Kafka are options for siding's clients: brokers, TLS, SASL, tuning. [New] refuses options
	// that siding sets itself.
	Kafka []kgo.Opt
	// Handler handles each record. See [Handler] for its contract.
	Handler Handler

	// Order says which records may run at the same time. Default OrderPartition.
	Order Order
	// Concurrency bounds the handlers that run at a time in this process. Under OrderPartition, at
	// most one runs per physical partition, and the default is no further bound. Otherwise the
	// default is 64, and a negative number means no bound.
	Concurrency int
	// HoldKeys keeps the order of a key through retries, under OrderKey and OrderPartition: a
	// record that fails does not go to a retry topic. It waits in its partition, for as long as it
	// would there, and so do later records of its key. Other keys run. So the first outcomes of a
	// key's records come in the order of their offsets, and so do the last ones, whatever crashes.
	// Null keys are never held; an empty key is one.
	//
	// Nothing is committed past a record that waits, so the lag shows it, and the source's
	// retention must outlast it. After a crash the next owner waits the rest of the time, and
	// counts on; the record's history begins anew. Records of retry topics run as without HoldKeys.
	// Default false.
	HoldKeys bool
	// MaxHold bounds the time that a policy may let a record and its key wait, in all; [New]
	// refuses a longer one. It caps Policy.MaxRetryAfter. While the topic is strained, failures are
	// no attempts, so that a key may wait for Breaker.MaxOutage more. Default 15 m.
	MaxHold time.Duration
	// MaxHeld bounds the records of a lane that wait for another attempt, and those behind them. At
	// that bound, and at 128 keys, the lane begins no record of another key. Default 10,000.
	MaxHeld int
	// Followers says what becomes of the records behind one that is dead-lettered. Default
	// ReleaseFollowers.
	Followers Followers

	// Policy says how often a record is tried, and where it goes then. An entry of Policies
	// replaces the whole Policy for its topic.
	Policy   Policy
	Policies map[string]Policy
	// Classifier decides what an error means. [New] refuses rules that can match nothing. Default:
	// the built-in rules; unknown errors are terminal.
	Classifier classify.Classifier

	// Naming names the retry, dead-letter and ledger topics. Default {topic}.retry.{delay},
	// {topic}.dlq, {topic}.dlq.ledger. If several groups consume a topic, add {group}.
	Naming retrytopics.Naming
	// Provision says what to do about missing siblings. Default: create them.
	Provision retrytopics.Spec

	// Start says where a source partition begins on which the group has no offset. A partition that
	// is added later begins at its start. Default StartEarliest.
	Start Start

	// CommitInterval is the interval between commits of finished offsets. Default 1 s.
	CommitInterval time.Duration
	// DrainTimeout is the time that running handlers and copies in flight have when a partition is
	// revoked. Run returns 10 s later at most. With the last commit, it must stay under the
	// rebalance timeout (kgo.RebalanceTimeout, 60 s by default). Default 20 s.
	DrainTimeout time.Duration

	// MaxInFlight bounds the records that a lane holds ready, and likewise its copies in flight. A
	// newly assigned lane has at most eight copies in flight; each acknowledged copy doubles that
	// number, up to this bound. Default 10,000.
	MaxInFlight int
	// MaxInFlightBytes bounds the bytes of records held ready, and likewise of copies in flight, in
	// this process. Each lane has its share. One fetch of each partition may come on top. Default
	// 64 MiB.
	MaxInFlightBytes int64
	// MaxParkedBytes bounds the packed bytes of parked records in memory. Beyond it, the records
	// due last are evicted, and fetched again before they are due. Each retry partition always has
	// room for its next record. Where it has no room for ten of the largest records in each retry
	// partition that holds some, records are fetched one by one, and more than twice each.
	//
	// On top of the bound come an answer of 2 MiB from each broker, and the unpacked headers of
	// running records. A record that was fetched again carries no context from hooks in Kafka
	// (kgo.WithHooks): they saw only the first fetch. Default 64 MiB.
	MaxParkedBytes int64

	// ErrorText returns the text of an error for headers, logs and spans; redact it here. Default:
	// the error's message.
	ErrorText func(error) string

	// Hooks are notified of dead letters, of parked and discarded records, and of lane states; see
	// [Hook]. Default none.
	Hooks []Hook

	// Version and Environment identify in a copy's headers the program that failed the record.
	// Default empty.
	Version, Environment string
	// TracerProvider makes a span of each attempt, linked to the spans of the producer and of the
	// last attempt. MeterProvider receives the metrics. Default: OpenTelemetry's global providers
	// at the time Run is called.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// AttemptTelemetryOff leaves out what OpenTelemetry's SDK does for each call of the handler: no
	// span, and no messaging.process.duration. Copies then carry no traceparent. The other metrics
	// cost a record that is handled next to nothing, and stay. Default false.
	AttemptTelemetryOff bool
	// Logger receives the messages of siding and its clients, never payloads. Default
	// slog.Default().
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	if cfg.Order != OrderPartition {
		cfg.Concurrency = cmp.Or(cfg.Concurrency, 64)
	}
	cfg.Concurrency = max(cfg.Concurrency, 0)
	cfg.CommitInterval = cmp.Or(cfg.CommitInterval, time.Second)
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, 20*time.Second)
	cfg.MaxInFlight = cmp.Or(cfg.MaxInFlight, 10_000)
	cfg.MaxInFlightBytes = cmp.Or(cfg.MaxInFlightBytes, 64<<20)
	cfg.MaxParkedBytes = cmp.Or(cfg.MaxParkedBytes, 64<<20)
	cfg.MaxHold = cmp.Or(cfg.MaxHold, defaultMaxHold)
	cfg.MaxHeld = cmp.Or(cfg.MaxHeld, defaultMaxHeld)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// policyOf is the policy of a topic, with its defaults.
func (cfg Config) policyOf(topic string) Policy {
	p, ok := cfg.Policies[topic]
	if !ok {
		p = cfg.Policy
	}
	if p = p.withDefaults(); cfg.HoldKeys {
		p.MaxRetryAfter = min(p.MaxRetryAfter, cfg.MaxHold)
	}
	return p
}

// validate reports all problems at once, and names the siblings.
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
		add("Handler is nil (Decode returns nil if one of its functions is)")
	}
	if len(cfg.Topics) == 0 {
		add("Topics is empty")
	}
	if cfg.Order > OrderNone {
		add("Order is Order(%d): OrderPartition, OrderKey or OrderNone", cfg.Order)
	}
	if at := cfg.Start.at; at != nil && at.Before(time.UnixMilli(0)) {
		add("Start is StartAt(%v), which is before 1970; StartEarliest begins at the log's start", at)
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
	all = append(all, cfg.Classifier.Validate())
	siblings, err := cfg.siblings()
	all = append(all, err)
	if err == nil {
		all = append(all, cfg.provisionProblems(siblings)...)
	}
	all = append(all, cfg.holdProblems()...)
	for i, hook := range cfg.Hooks {
		for _, problem := range hookProblems(hook) {
			add("Hooks[%d]: %s", i, problem)
		}
	}
	all = append(all, clientProblems(cfg.Kafka, cfg.DrainTimeout)...)
	return siblings, errors.Join(all...)
}

// leastRoom is how long a tier must keep a record after its jitter made it due at the latest: for a
// consumer that is down meanwhile.
const leastRoom = 30 * time.Minute

// provisionProblems lists the problems of Provision, and what of a policy does not fit a tier's
// retention: MaxRetryAfter, and Jitter.
func (cfg Config) provisionProblems(siblings map[string]retrytopics.Siblings) (all []error) {
	if err := cfg.Provision.Validate(slices.Collect(maps.Values(siblings))...); err != nil {
		for line := range strings.Lines(err.Error()) {
			all = append(all, errors.New("Provision: "+strings.TrimPrefix(strings.TrimSpace(line), "spec: ")))
		}
		return all
	}
	for t, s := range siblings {
		p := cfg.policyOf(t)
		for _, tier := range s.Tiers {
			if keeps := cfg.Provision.RetentionOf(tier.Delay); keeps > 0 && p.MaxRetryAfter > keeps {
				all = append(all, fmt.Errorf("the policy of %q: MaxRetryAfter is %v, but %s keeps a record for %v: lower it, or raise Provision.TierRetention",
					t, p.MaxRetryAfter, tier.Topic, keeps))
			}
			latest := p.jittered(tier.Delay)
			if keeps := cfg.Provision.RetentionOf(tier.Delay); keeps > 0 && p.Jitter <= 1 && keeps < latest+leastRoom {
				all = append(all, fmt.Errorf("the policy of %q: with a Jitter of %v a record of %s is due up to %v after its writing, but the topic keeps it for %v: "+
					"lower Jitter, or raise Provision.TierRetention to %v at least", t, p.Jitter, tier.Topic, latest, keeps, latest+leastRoom))
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
		if strings.ContainsAny(t, `*+?^$|()[]{}\`) {
			problems = append(problems, fmt.Errorf("topic %q: regular expressions are not supported, name each topic in Topics", t))
			continue
		}
		// Another check reports a missing group; this one reports the other problems of the names.
		s, err := cfg.Naming.Siblings(t, cmp.Or(cfg.Group, "group"), cfg.policyOf(t).Tiers...)
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

// Order says which records may run at the same time.
type Order uint8

const (
	// OrderPartition runs one record at a time per physical partition. The source and its tiers are
	// separate, so a slow retry does not hold up the source. The default.
	OrderPartition Order = iota
	// OrderKey runs one record at a time per key in the whole lane, retries included; different
	// keys run in parallel. Records with a null key have no order; an empty key is a key. A parked
	// record does not hold up later records of its key, unless Config.HoldKeys is set.
	OrderKey
	// OrderNone sets no order; only Config.Concurrency bounds the running records.
	OrderNone
)

// holdProblems lists what speaks against HoldKeys.
func (cfg Config) holdProblems() (all []error) {
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if cfg.Followers > FollowHead {
		add("Followers is Followers(%d): ReleaseFollowers or FollowHead", cfg.Followers)
	}
	if cfg.MaxHold <= 0 {
		add("MaxHold must be positive, or zero for the default")
	}
	if cfg.MaxHeld <= 0 {
		add("MaxHeld must be positive, or zero for the default")
	}
	if !cfg.HoldKeys {
		if cfg.Followers != ReleaseFollowers {
			add("Followers is FollowHead, but HoldKeys is not set: no record waits behind another one")
		}
		return all
	}
	if cfg.Order == OrderNone {
		add("HoldKeys keeps the order of a key, and Order is OrderNone: OrderKey or OrderPartition")
	}
	for _, t := range slices.Compact(slices.Sorted(slices.Values(cfg.Topics))) {
		p := cfg.policyOf(t)
		if len(p.Tiers) == 0 {
			add("HoldKeys: the policy of %q has no Tiers, so no record waits for another attempt", t)
			continue
		}
		if waits := p.RetryTime(); waits > cfg.MaxHold {
			add("HoldKeys: by the policy of %q a record and its key wait for up to %v in all, and nothing is committed past it for as long: "+
				"shorten Tiers, lower MaxAttempts, or raise MaxHold, which is %v", t, waits, cfg.MaxHold)
		}
	}
	return all
}
