package consumer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/retrytopics"
)

// valid is a configuration that New accepts. A dial with it fails the test: New does no I/O.
func valid(t *testing.T, opts ...kgo.Opt) Config {
	t.Helper()
	return Config{
		Group:  "billing",
		Topics: []string{"orders", "refunds"},
		Kafka: append([]kgo.Opt{
			kgo.SeedBrokers("broker.invalid:9092"),
			kgo.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) {
				if ctx.Err() == nil {
					t.Errorf("New dials %s", address)
				}
				return nil, errors.New("no connection is wanted")
			}),
		}, opts...),
		Handler: func(context.Context, *kgo.Record) error { return nil },
	}
}

// problemsOf returns the problems that New finds in a configuration, a line each.
func problemsOf(t *testing.T, cfg Config) []string {
	t.Helper()
	c, err := New(cfg)
	if err == nil {
		return nil
	}
	if c != nil {
		t.Errorf("New returned a consumer with the error %v", err)
	}
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if first != "consumer: invalid configuration:" {
		t.Errorf("the error begins with %q", first)
	}
	return strings.Split(rest, "\n")
}

// An invalid configuration is refused, and the error names the field and the reason.
func TestConfig_InvalidIsRefusedWithTheReason(t *testing.T) {
	policy := func(p Policy) func(*Config) { return func(c *Config) { c.Policy = p } }
	delays := func(d ...time.Duration) func(*Config) { return policy(Policy{Tiers: d}) }
	type row struct {
		change func(*Config)
		want   []string // in one line each
	}
	each(t, map[string]row{
		"no group":             {func(c *Config) { c.Group = "" }, []string{"Group is empty"}},
		"group is no text":     {func(c *Config) { c.Group = "bill\xffing" }, []string{"Group", "UTF-8"}},
		"former: empty":        {func(c *Config) { c.FormerGroups = []string{""} }, []string{"FormerGroups has an empty name"}},
		"former: no text":      {func(c *Config) { c.FormerGroups = []string{"\xff"} }, []string{"FormerGroups", "UTF-8"}},
		"former: the group":    {func(c *Config) { c.FormerGroups = []string{"old", c.Group} }, []string{"FormerGroups", "which is Group"}},
		"former: twice":        {func(c *Config) { c.FormerGroups = []string{"a", "b", "a"} }, []string{`FormerGroups has "a" twice`}},
		"no handler":           {func(c *Config) { c.Handler = nil }, []string{"Handler is nil"}},
		"decodes with nothing": {func(c *Config) { c.Handler = Decode[int](nil, nil) }, []string{"Handler is nil", "Decode"}},
		"a decoder alone":      {func(c *Config) { c.Handler = Decode(JSON[int], nil) }, []string{"Handler is nil", "Decode"}},
		"a rule of nothing":    {func(c *Config) { c.Classifier.Rules = []classify.Rule{{Class: "x"}} }, []string{"Classifier.Rules[0]", "no condition"}},
		"a verdict of nothing": {func(c *Config) { c.Classifier.Unknown = 77 }, []string{"Classifier.Unknown is Verdict(77)"}},
		"no topics":            {func(c *Config) { c.Topics = nil }, []string{"Topics is empty"}},
		"no brokers":           {func(c *Config) { c.Kafka = nil }, []string{"no options in Kafka", "kgo.SeedBrokers"}},
		"a nil option":         {func(c *Config) { c.Kafka = append(c.Kafka, nil) }, []string{"Kafka", "nil"}},
		"a topic twice":        {func(c *Config) { c.Topics = []string{"orders", "orders"} }, []string{`"orders" is given twice`}},
		"an empty topic":       {func(c *Config) { c.Topics = []string{""} }, []string{"the name is empty"}},
		"a regex as a topic":   {func(c *Config) { c.Topics = []string{"^orders.*"} }, []string{`topic "^orders.*": regular expressions are not supported`}},
		"a sibling as source":  {func(c *Config) { c.Topics = []string{"orders", "orders.retry.5s"} }, []string{`"orders.retry.5s"`, "its siblings follow"}},
		"a DLQ as source":      {func(c *Config) { c.Topics = []string{"orders.dlq", "orders"} }, []string{`"orders.dlq"`, "its siblings follow"}},
		"names of . and _":     {func(c *Config) { c.Topics = []string{"a.b", "a_b"} }, []string{"differ in '.' and '_' only"}},
		"siblings collide":     {func(c *Config) { c.Topics = []string{"a", "a.dlq_ledger"} }, []string{"a.dlq_ledger", "a.dlq.ledger"}},
		"a name too long":      {func(c *Config) { c.Topics = []string{strings.Repeat("x", 249)} }, []string{"characters, Kafka allows 249"}},
		"templates":            {func(c *Config) { c.Naming.DLQ = "dead-letters" }, []string{"Naming", "{topic}"}},
		"start at no time":     {func(c *Config) { c.Start = StartAt(time.Time{}) }, []string{"Start is StartAt(0001-01-01", "StartEarliest"}},
		"start in 1969":        {func(c *Config) { c.Start = StartAt(time.Unix(-1, 0)) }, []string{"Start is StartAt(19", "before 1970"}},
		"order":                {func(c *Config) { c.Order = 9 }, []string{"Order is Order(9)"}},
		"tiers not ascending":  {delays(time.Second, time.Second), []string{"strictly ascending"}},
		"tiers descending":     {delays(time.Minute, time.Second), []string{"strictly ascending"}},
		"a tier of zero":       {delays(0), []string{"delay 0s is not positive"}},
		"a negative tier":      {delays(-time.Second), []string{"delay -1s is not positive"}},
		"half a millisecond":   {delays(500 * time.Microsecond), []string{"not a whole number of milliseconds"}},
		"CommitInterval":       {func(c *Config) { c.CommitInterval = -1 }, []string{"CommitInterval must be positive"}},
		"DrainTimeout":         {func(c *Config) { c.DrainTimeout = -1 }, []string{"DrainTimeout must be positive"}},
		"MaxInFlight":          {func(c *Config) { c.MaxInFlight = -1 }, []string{"MaxInFlight must be positive"}},
		"MaxInFlightBytes":     {func(c *Config) { c.MaxInFlightBytes = -1 }, []string{"MaxInFlightBytes must be positive"}},
		"MaxParkedBytes":       {func(c *Config) { c.MaxParkedBytes = -1 }, []string{"MaxParkedBytes must be positive"}},
		"MaxAttempts negative": {policy(Policy{MaxAttempts: -1}), []string{"Policy: MaxAttempts is -1"}},
		"MaxAttempts, no tier": {policy(Policy{Tiers: []time.Duration{}, MaxAttempts: 2}), []string{"Policy: MaxAttempts is 2", "no tier"}},
		"Jitter over one":      {policy(Policy{Jitter: 1.01}), []string{"Policy: Jitter is 1.01"}},
		"Jitter not a number":  {policy(Policy{Jitter: math.NaN()}), []string{"Policy: Jitter is NaN"}},
		"Jitter infinite":      {policy(Policy{Jitter: math.Inf(1)}), []string{"Policy: Jitter is +Inf"}},
		"Immediate.Base":       {policy(Policy{Immediate: Immediate{Base: -1}}), []string{"Immediate.Base"}},
		"Immediate.Max":        {policy(Policy{Immediate: Immediate{Max: -1}}), []string{"Immediate.Max"}},
		"OnExhausted":          {policy(Policy{OnExhausted: 9}), []string{"Policy: OnExhausted is Disposition(9)"}},
		"OnTerminal":           {policy(Policy{OnTerminal: 9}), []string{"Policy: OnTerminal is Disposition(9)"}},
		"policy of no topic":   {func(c *Config) { c.Policies = map[string]Policy{"ordres": {}} }, []string{`Policies has "ordres", which is not among Topics`}},
		"policy of a topic": {
			func(c *Config) { c.Policies = map[string]Policy{"refunds": {Jitter: 2}} },
			[]string{`Policies["refunds"]: Jitter is 2`},
		},
		"tiers of a topic": {
			func(c *Config) { c.Policies = map[string]Policy{"refunds": {Tiers: []time.Duration{-1}}} },
			[]string{`"refunds"`, "not positive"},
		},
		"drain as long as the rebalance timeout": {func(c *Config) { c.DrainTimeout = time.Minute }, []string{"DrainTimeout is 1m0s", "kgo.RebalanceTimeout"}},
		"drain leaves no time for the commit":    {func(c *Config) { c.DrainTimeout = 57 * time.Second }, []string{"DrainTimeout is 57s", "kgo.RebalanceTimeout"}},
		"drain for ever":                         {func(c *Config) { c.DrainTimeout = math.MaxInt64 }, []string{"DrainTimeout", "kgo.RebalanceTimeout"}},
		"rebalance timeout below the drain": {
			func(c *Config) { c.Kafka = append(c.Kafka, kgo.RebalanceTimeout(20*time.Second)) },
			[]string{"DrainTimeout is 20s", "20s (kgo.RebalanceTimeout)"},
		},
		"no acks": {func(c *Config) { c.Kafka = append(c.Kafka, kgo.RequiredAcks(kgo.NoAck())) }, []string{"option kgo.RequiredAcks in Kafka is siding's"}},
		"acks of the leader, and a broker that is a URL": {
			func(c *Config) {
				c.Kafka = append(c.Kafka, kgo.RequiredAcks(kgo.LeaderAck()), kgo.SeedBrokers("http://localhost:9292"))
			},
			[]string{`kgo.SeedBrokers in Kafka has "http://localhost:9292", which is not host:port`},
		},
		"a retention": {func(c *Config) { c.Provision.TierRetention = time.Second }, []string{"Provision: TierRetention 1s is too short"}},
		"a Jitter that outlives a retry topic": {
			func(c *Config) {
				c.Policy = Policy{Tiers: []time.Duration{5 * time.Hour}, Jitter: 1}
				c.Provision.TierRetention = 10 * time.Hour
			},
			[]string{"Jitter of 1", "orders.retry.5h", "due up to 10h0m0s", "keeps it for 10h0m0s", "10h30m0s at least"},
		},
		"no commits": {func(c *Config) { c.Kafka = append(c.Kafka, kgo.DisableAutoCommit()) }, []string{"Kafka", "remove the options", "commits"}},
		"a callback of the group": {
			func(c *Config) {
				c.Kafka = append(c.Kafka, kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) {}))
			},
			[]string{"Kafka", "remove the options", "callbacks"},
		},
		"an option that kgo refuses": {func(c *Config) { c.Kafka = append(c.Kafka, kgo.SessionTimeout(time.Millisecond)) }, []string{"Kafka", "session timeout"}},
	}, func(t *testing.T, tt row) {
		cfg := valid(t)
		tt.change(&cfg)
		problems := problemsOf(t, cfg)
		if !slices.ContainsFunc(problems, func(line string) bool { return containsAll(line, tt.want) }) {
			t.Errorf("got %q, want a line with %q", problems, tt.want)
		}
	})
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// The error of New names every problem at once.
func TestConfig_OneErrorNamesEveryProblem(t *testing.T) {
	t.Parallel()
	cfg := Config{
		Topics:   []string{"orders", "orders", "orders.dlq", "a*"},
		Kafka:    []kgo.Opt{kgo.ConsumerGroup("mine"), kgo.DisableAutoCommit(), kgo.RecordRetries(1)},
		Order:    7,
		Policy:   Policy{MaxAttempts: -1, Jitter: 3, OnExhausted: 5, OnTerminal: 6},
		Policies: map[string]Policy{"nowhere": {Jitter: 4}},

		CommitInterval: -1, MaxInFlight: -1, MaxParkedBytes: -1,
	}
	problems := strings.Join(problemsOf(t, cfg), "\n")
	for _, want := range []string{
		"Group is empty", "Handler is nil", "Order is", `"orders" is given twice`, `"orders.dlq"`, `topic "a*": regular`,
		"CommitInterval", "MaxInFlight", "MaxParkedBytes", "MaxAttempts", "Jitter is 3", "OnExhausted", "OnTerminal", `"nowhere"`,
		"Jitter is 4", "kgo.ConsumerGroup", "kgo.RecordRetries",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("the error does not name %q; it is\n%s", want, problems)
		}
	}
}

// The error named one mistake once for the topic and once for each of its siblings.
func TestConfig_TellsAMistakeOnce(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"payments.*", "pay ments"} {
		cfg := valid(t)
		cfg.Topics = []string{topic}
		if problems := problemsOf(t, cfg); len(problems) != 1 || !strings.Contains(problems[0], strconv.Quote(topic)) {
			t.Errorf("of the topic %q: %q, want one line", topic, problems)
		}
	}
}

// kgo looks up an address that is none for ever.
func TestConfig_BrokersAreAddresses(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"kafka-1:9092": true, "kafka-1": true, "10.0.0.1:9092": true, "[::1]:9092": true, "[::1]": true, "::1": true, "kafka_1.svc.cluster.local:29092": true,
		"http://localhost:9292": false, "SASL_SSL://kafka-1:9092": false, "a:9092,b:9092": false, "a,b": false, " a:9092": false, "": false, ":9092": false,
		"a:70000": false, "user@a:9092": false, "a/b": false,
	} {
		if isAddress(address) != good {
			t.Errorf("%q is an address: %v, want %v", address, !good, good)
		}
	}
}

// setRefused has a realistic use of each option that siding refuses.
var setRefused = map[string]kgo.Opt{
	"ConsumerGroup":      kgo.ConsumerGroup("mine"),
	"ShareGroup":         kgo.ShareGroup("mine"),
	"ConsumeTopics":      kgo.ConsumeTopics("mine"),
	"ConsumePartitions":  kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"mine": {0: kgo.NewOffset()}}),
	"ConsumeRegex":       kgo.ConsumeRegex(),
	"ConsumeStartOffset": kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
	"ConsumeResetOffset": kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
	"AdjustFetchOffsetsFn": kgo.AdjustFetchOffsetsFn(func(_ context.Context, o map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
		return o, nil
	}),
	"OnOffsetsFetched": kgo.OnOffsetsFetched(func(context.Context, *kgo.Client, *kmsg.OffsetFetchResponse) error {
		return nil
	}),
	"BlockRebalanceOnPoll":               kgo.BlockRebalanceOnPoll(),
	"AutoCommitInterval":                 kgo.AutoCommitInterval(time.Minute),
	"GroupProtocol":                      kgo.GroupProtocol("mine"),
	"TransactionalID":                    kgo.TransactionalID("mine"),
	"DisableIdempotentWrite":             kgo.DisableIdempotentWrite(),
	"AllowIdempotentProduceCancellation": kgo.AllowIdempotentProduceCancellation(),
	"RecordRetries":                      kgo.RecordRetries(1),
	"RecordDeliveryTimeout":              kgo.RecordDeliveryTimeout(time.Minute),
	"ManualFlushing":                     kgo.ManualFlushing(),
	"MaxBufferedRecords":                 kgo.MaxBufferedRecords(1),
	"MaxBufferedBytes":                   kgo.MaxBufferedBytes(1000),
	"DefaultProduceTopicAlways":          kgo.DefaultProduceTopicAlways(),
	"WithPools":                          kgo.WithPools(pool{}),
	"AllowAutoTopicCreation":             kgo.AllowAutoTopicCreation(),
}

// pool is one of kgo's pools.
type pool struct{}

func (pool) GetDecompressBytes([]byte, kgo.CompressionCodecType) []byte { return nil }
func (pool) PutDecompressBytes([]byte)                                  {}

// A kgo option that siding owns is refused by its name, with the reason.
func TestConfig_RefusesOptionsThatSidingOwns(t *testing.T) {
	t.Parallel()
	for _, o := range refusedOptions {
		t.Run(o.option, func(t *testing.T) {
			t.Parallel()
			opt, ok := setRefused[o.option]
			if !ok {
				t.Fatalf("no example of %s", o.option)
			}
			// Without a topic kgo refuses it.
			problems := problemsOf(t, valid(t, opt, kgo.DefaultProduceTopic("mine")))
			if want := fmt.Sprintf("option kgo.%s in Kafka is siding's: %s", o.option, o.why); !slices.Contains(problems, want) {
				t.Errorf("got %q, want %q", problems, want)
			}
			// which sets kgo.ConsumeStartOffset as well
			if len(problems) != 1 && o.option != "ConsumeResetOffset" {
				t.Errorf("got %q, want one line", problems)
			}
		})
	}
}

// The kgo options that siding does not own pass.
func TestConfig_PassesOtherOptions(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]kgo.Opt{
		"TLS":           kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}),
		"SASL":          kgo.SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism()),
		"SASL, several": kgo.SASL([]sasl.Mechanism{plain.Auth{User: "u", Pass: "p"}.AsMechanism()}...),
		"rack":          kgo.Rack("eu-1a"),
		"static member": kgo.InstanceID("billing-0"),
		"KIP-848":       kgo.ServerSideBalancer(),
		"an assignor":   kgo.Balancers(kgo.RangeBalancer()),
		"hooks":         kgo.WithHooks(hook{}),
		"a logger":      kgo.WithLogger(kgo.BasicLogger(t.Output(), kgo.LogLevelError, nil)),
		"no logger":     kgo.WithLogger(nil),
		"compression":   kgo.ProducerBatchCompression(kgo.ZstdCompression()),
		"linger":        kgo.ProducerLinger(5 * time.Millisecond),
		"isolation":     kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		"client id":     kgo.ClientID("billing-api"),
		"fetch sizes":   kgo.FetchMaxPartitionBytes(1 << 16),
		"session":       kgo.SessionTimeout(10 * time.Second),
		"heartbeat":     kgo.HeartbeatInterval(time.Second),
		"rebalance":     kgo.RebalanceTimeout(5 * time.Minute),
		"batch size":    kgo.ProducerBatchMaxBytes(1 << 18),
		// looks like none; overridden
		"a partitioner":   kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		"a nil callback":  kgo.AdjustFetchOffsetsFn(nil),
		"acks as siding":  kgo.RequiredAcks(kgo.AllISRAcks()),
		"old versions":    kgo.MaxVersions(nil),
		"request timeout": kgo.RequestTimeoutOverhead(5 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := valid(t, opt)
			if name == "TLS" {
				// kgo accepts only one way of dialing
				cfg.Kafka = []kgo.Opt{kgo.SeedBrokers("broker.invalid:9093"), opt}
			}
			if problems := problemsOf(t, cfg); problems != nil {
				t.Errorf("refused: %q", problems)
			}
		})
	}
}

type parkedHook struct{}

func (parkedHook) OnParked(Routed) {}

type pointerHook struct{}

func (*pointerHook) OnParked(Routed) {}

// misspelt has the name of a hook's method.
type misspelt struct{}

func (misspelt) OnDeadLettered(*kgo.Record) {}

// halfRight would be called for parked records only.
type halfRight struct{ pointerHook }

func (halfRight) OnDiscarded(Routed) error { return nil }

// A hook whose method is misspelt, or has another receiver, is refused.
func TestConfig_RefusesAHookWithoutItsMethods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hook Hook
		want string // nothing: it is taken
	}{
		{parkedHook{}, ""},
		{&parkedHook{}, ""},
		{&pointerHook{}, ""},
		{nil, "Hooks[0]: it is nil"},
		{hook{}, "Hooks[0]: consumer.hook has no method of a hook: OnDeadLettered, "},
		{func(Routed) {}, "has no method of a hook"},
		{pointerHook{}, "consumer.pointerHook.OnParked is never called, since its receiver is a pointer: pass a pointer"},
		{misspelt{}, "consumer.misspelt.OnDeadLettered is never called: it is a func(*kgo.Record), and consumer.HookDeadLettered wants a func(consumer.Routed)"},
		{&halfRight{}, "*consumer.halfRight.OnDiscarded is never called: it is a func(consumer.Routed) error, and consumer.HookDiscarded wants a func(consumer.Routed)"},
	} {
		cfg := valid(t)
		cfg.Hooks = []Hook{tt.hook}
		got := problemsOf(t, cfg)
		if tt.want == "" && got != nil || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%T: problems %q, want %q", tt.hook, got, tt.want)
		}
	}
}

type hook struct{}

func (hook) OnBrokerConnect(kgo.BrokerMetadata, time.Duration, net.Conn, error) {}

// New does not change the user's slices, and keeps none of them.
func TestConfig_LeavesTheUsersSlicesAlone(t *testing.T) {
	t.Parallel()
	cfg := valid(t)
	cfg.Kafka = append(make([]kgo.Opt, 0, 16), cfg.Kafka...)
	cfg.Policy.Tiers = []time.Duration{time.Second, time.Minute}
	cfg.Hooks = []Hook{parkedHook{}}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Topics[0], cfg.Policy.Tiers[0], cfg.Hooks[0] = "changed", time.Hour, nil
	if c.cfg.Topics[0] != "orders" || c.policies["orders"].Tiers[0] != time.Second {
		t.Errorf("topics %v, tiers %v after the caller changed its own", c.cfg.Topics, c.policies["orders"].Tiers)
	}
	if len(c.hooks.parked) != 1 || c.hooks.parked[0] == nil {
		t.Errorf("the hooks are %v after the caller changed its own", c.hooks.parked)
	}
	for i, o := range cfg.Kafka[len(cfg.Kafka):cap(cfg.Kafka)] {
		if o != nil {
			t.Errorf("option %d was written behind the user's slice", i)
		}
	}
}

// A field that is zero has the default that its documentation names.
func TestConfig_ZeroIsTheDocumentedDefault(t *testing.T) {
	t.Parallel()
	cfg := Config{}.withDefaults()
	p := cfg.policyOf("orders")
	for _, tt := range []struct {
		what      string
		got, want any
	}{
		{"Order", cfg.Order, OrderPartition},
		{"Concurrency by partition", cfg.Concurrency, 0},
		{"Concurrency by key", Config{Order: OrderKey}.withDefaults().Concurrency, 64},
		{"Concurrency without order", Config{Order: OrderNone}.withDefaults().Concurrency, 64},
		{"CommitInterval", cfg.CommitInterval, time.Second},
		{"DrainTimeout", cfg.DrainTimeout, 20 * time.Second},
		{"MaxInFlight", cfg.MaxInFlight, 10_000},
		{"MaxInFlightBytes", cfg.MaxInFlightBytes, int64(64 << 20)},
		{"MaxParkedBytes", cfg.MaxParkedBytes, int64(64 << 20)},
		{"Logger", cfg.Logger, slog.Default()},
		{"Start", cfg.Start, StartEarliest()},
		{"Classifier.Unknown", cfg.Classifier.Unknown, classify.VerdictTerminal},
		{"Provision.Mode", cfg.Provision.Mode, retrytopics.Create},
		{"Tiers", p.Tiers, []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}},
		{"Jitter", p.Jitter, 0.1},
		{"MaxAttempts", p.MaxAttempts, 4},
		{"MaxAge", p.MaxAge, time.Duration(-1)},
		{"MaxRetryAfter", p.MaxRetryAfter, time.Hour},
		{"HandlerTimeout", p.HandlerTimeout, time.Minute},
		{"Immediate", p.Immediate, Immediate{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}},
		{"OnExhausted", p.OnExhausted, DeadLetter},
		{"OnTerminal", p.OnTerminal, DeadLetter},
		{"Delays", Policy{}.Delays(), []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s is %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

// A negative limit means no limit.
func TestConfig_NegativeMeansNone(t *testing.T) {
	t.Parallel()
	p := Policy{Tiers: []time.Duration{}, Jitter: -1, MaxAge: -1, HandlerTimeout: -1, MaxRetryAfter: -1, Immediate: Immediate{Attempts: -1}}.withDefaults()
	if len(p.Tiers) != 0 || p.MaxAttempts != 1 || p.Jitter != 0 || p.MaxAge >= 0 || p.HandlerTimeout >= 0 || p.MaxRetryAfter >= 0 || p.Immediate.Attempts != 0 {
		t.Errorf("got %+v", p)
	}
	if problems := p.problems("Policy"); problems != nil {
		t.Errorf("refused: %v", problems)
	}
	if got := (Config{Order: OrderKey, Concurrency: -1}).withDefaults().Concurrency; got != 0 {
		t.Errorf("Concurrency -1 is %d, want no bound", got)
	}
}

// A topic's own policy replaces the common one as a whole.
func TestConfig_TopicsPolicyReplacesTheWhole(t *testing.T) {
	t.Parallel()
	cfg := Config{
		Policy:   Policy{Tiers: []time.Duration{time.Hour}, MaxAge: time.Hour, OnTerminal: Stop},
		Policies: map[string]Policy{"refunds": {MaxAttempts: 9}},
	}.withDefaults()
	if p := cfg.policyOf("orders"); p.MaxAge != time.Hour || p.OnTerminal != Stop || len(p.Tiers) != 1 {
		t.Errorf("the policy of orders is %+v", p)
	}
	if p := cfg.policyOf("refunds"); p.MaxAge != -1 || p.OnTerminal != DeadLetter || len(p.Tiers) != 3 || p.MaxAttempts != 9 {
		t.Errorf("the policy of refunds is %+v, want the defaults and 9 attempts", p)
	}
}
