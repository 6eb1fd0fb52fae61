package consumer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/sidingkafka/siding/internal/client"
)

// Three clients share the user's options: one in the group for the sources, one that reads the retry partitions directly,
// one that writes copies; and a fourth that writes large copies one at a time, made when there is one. On each, siding's changeable defaults come first, then the user's options, then what siding owns.

// owned are the options that a user may not set, with what to do instead. Each is found by comparing what a client with the
// user's options says with what one without them says.
var owned = []ownedOpt{
	{kgo.ConsumerGroup, "set Config.Group"},
	{kgo.ShareGroup, "siding consumes as a consumer group"},
	{kgo.ConsumeTopics, "set Config.Topics"},
	{kgo.ConsumePartitions, "partitions come from the group"},
	{kgo.ConsumeRegex, "regex subscriptions are not offered: name the topics in Config.Topics"},
	{kgo.ConsumeExcludeTopics, "regex subscriptions are not offered: name the topics in Config.Topics"},
	{kgo.ConsumeStartOffset, "set Config.Start"},
	{kgo.ConsumeResetOffset, "siding goes to the log's start, and says what was lost"},
	{kgo.AdjustFetchOffsetsFn, "siding settles where a partition starts; see Config.Start"},
	{kgo.OnOffsetsFetched, "siding reads the commit metadata"},
	{kgo.OnPartitionsAssigned, "siding drains and commits in it"},
	{kgo.OnPartitionsRevoked, "siding drains and commits in it"},
	{kgo.OnPartitionsLost, "siding discards uncommitted work in it"},
	{kgo.OnPartitionsCallbackBlocked, "siding never blocks the poll"},
	{kgo.BlockRebalanceOnPoll, "siding polls while lanes drain"},
	{kgo.AutoCommitCallback, "siding commits by itself"},
	{kgo.AutoCommitInterval, "set Config.CommitInterval"},
	{kgo.AutoCommitMarks, "siding commits by itself"},
	{kgo.DisableAutoCommit, "siding commits by itself"},
	{kgo.GreedyAutoCommit, "siding commits by itself"},
	{kgo.GroupProtocol, "siding speaks the consumer protocol"},
	{kgo.KeepControlRecords, "control records are no records for a handler"},
	{kgo.TransactionalID, "at-least-once delivery has no transactions"},
	{kgo.RequiredAcks, "a copy is safe only when all in-sync replicas have it"},
	{kgo.DisableIdempotentWrite, "a copy must not be written twice by a retry"},
	{kgo.AllowIdempotentProduceCancellation, "a copy on its way cannot be cancelled safely"},
	{kgo.RecordRetries, "a copy is repeated until it is safe"},
	{kgo.RecordDeliveryTimeout, "a copy is repeated until it is safe"},
	{kgo.ManualFlushing, "copies are sent as they come"},
	{kgo.MaxBufferedRecords, "siding bounds the copies on their way, a lane at a time"},
	{kgo.MaxBufferedBytes, "siding bounds the copies on their way, a lane at a time"},
	{kgo.DefaultProduceTopic, "copies name their topic"},
	{kgo.DefaultProduceTopicAlways, "copies name their topic"},
	{kgo.WithPools, "siding keeps records beyond the poll that brought them"},
	{kgo.AllowAutoTopicCreation, "siding provisions what it needs, with the right settings; see Config.Provision"},
}

// ownedOpt is an option by its function.
type ownedOpt struct {
	opt any
	why string
}

// probe builds a client that opens no connection, to look at options.
func probe(opts ...kgo.Opt) (*kgo.Client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return client.New(append(slices.Clip(opts), kgo.WithContext(ctx), kgo.WithLogger(silent{}))...)
}

// silent is the logger of a probe: what it would say is about a client that nobody uses.
type silent struct{}

func (silent) Level() kgo.LogLevel              { return kgo.LogLevelNone }
func (silent) Log(kgo.LogLevel, string, ...any) {}

// clientProblems lists the user's options that siding owns, and those that do not go together.
func clientProblems(cfg Config) (all []error) {
	if len(cfg.Kafka) == 0 {
		all = append(all, errors.New("there are no options in Kafka: name the brokers at least, kgo.SeedBrokers(…)"))
	}
	opts := slices.DeleteFunc(slices.Clone(cfg.Kafka), func(o kgo.Opt) bool { return o == nil })
	if len(opts) < len(cfg.Kafka) {
		all = append(all, errors.New("an option in Kafka is nil"))
	}
	said := map[int]bool{}
	for _, o := range opts {
		if i := ownedBy(o); i >= 0 && !said[i] {
			said[i] = true
			all = append(all, fmt.Errorf("option %s in Kafka is siding's: %s", optName(owned[i].opt), owned[i].why))
		}
	}
	together, err := probe(opts...)
	if err != nil {
		if len(said) == 0 { // else it is most likely about those
			all = append(all, fmt.Errorf("the options in Kafka: %w", err))
		}
		return all
	}
	defer together.Close()
	rebalance, _ := together.OptValue(kgo.RebalanceTimeout).(time.Duration)
	if need := stuckAfter + minCommitTime; cfg.DrainTimeout >= rebalance-need {
		all = append(all, fmt.Errorf("DrainTimeout %v: with %v for stuck handlers and the last commit it must be under the rebalance timeout, %v (kgo.RebalanceTimeout)",
			cfg.DrainTimeout, need, rebalance))
	}
	return all
}

// companions are options without one of which kgo refuses some of those that siding owns.
var companions = [][]kgo.Opt{
	nil,
	{kgo.DisableIdempotentWrite()},
	{kgo.ConsumerGroup("siding")},
	{kgo.ConsumeRegex()},
	{kgo.DefaultProduceTopic("siding")},
}

// needGroup are callbacks that kgo refuses without a group and replaces by its own within one. So they show in that unsetting
// them makes the difference.
var needGroup = []struct {
	opt   any
	unset kgo.Opt
}{
	{kgo.OnPartitionsAssigned, kgo.OnPartitionsAssigned(nil)},
	{kgo.OnPartitionsRevoked, kgo.OnPartitionsRevoked(nil)},
	{kgo.OnPartitionsLost, kgo.OnPartitionsLost(nil)},
	{kgo.AutoCommitCallback, kgo.AutoCommitCallback(nil)},
}

// ownedBy finds which of the owned options o is; -1 for none. It looks at each option by itself: kgo stops at the first thing
// that it refuses about several, and one error is to name every problem.
func ownedBy(o kgo.Opt) int {
	for _, with := range companions {
		// The one of these two that is not set follows the other.
		with = append([]kgo.Opt{kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.RewindOffset(time.Minute))}, with...)
		if i, ok := differsIn(with, append(slices.Clip(with), o)); ok && (i >= 0 || len(with) == 2) {
			return i
		}
	}
	for _, n := range needGroup {
		if cl, err := probe(o, n.unset); err == nil {
			cl.Close()
			return slices.IndexFunc(owned, func(a ownedOpt) bool { return optName(a.opt) == optName(n.opt) })
		}
	}
	return -1
}

// differsIn finds the owned option by which two clients differ, -1 for none; false where kgo refuses one of the two.
func differsIn(a, b []kgo.Opt) (int, bool) {
	plain, err := probe(a...)
	if err != nil {
		return -1, false
	}
	defer plain.Close()
	user, err := probe(b...)
	if err != nil {
		return -1, false
	}
	defer user.Close()
	for i := range owned {
		if !same(plain.OptValues(owned[i].opt), user.OptValues(owned[i].opt)) {
			return i, true
		}
	}
	return -1, true
}

// minCommitTime is what a revoke needs for its last commit.
const minCommitTime = 2 * time.Second

// commitTimeFor is how long a commit may take: what the rebalance timeout leaves behind a drain. It takes longer where the coordinator
// accepts connections and says nothing on them. kgo's requests wait for their connection whatever becomes of their context, for
// kgo.RequestTimeoutOverhead (10 s) a try, and behind those to the same broker that came before: a minute was seen. The commit is not
// abandoned meanwhile, since the next one must not overtake it; and who is silent to a commit lets nobody join either.
func commitTimeFor(cl *kgo.Client, drain time.Duration) time.Duration {
	rebalance, _ := cl.OptValue(kgo.RebalanceTimeout).(time.Duration)
	return min(max(rebalance-drain-stuckAfter-time.Second, minCommitTime), 15*time.Second)
}

// same compares the values of an option. Functions cannot be compared: one that is set differs from one that is not.
func same(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		va, vb := reflect.ValueOf(a[i]), reflect.ValueOf(b[i])
		if va.IsValid() && va.Kind() == reflect.Func || vb.IsValid() && vb.Kind() == reflect.Func {
			if isNil(va) != isNil(vb) {
				return false
			}
			continue
		}
		if isEmpty(va) && isEmpty(vb) {
			continue
		}
		if !reflect.DeepEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

func isNil(v reflect.Value) bool { return !v.IsValid() || v.IsNil() }

func isEmpty(v reflect.Value) bool {
	return !v.IsValid() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}

// fetchWait is how long an idle fetch waits for records. A partition that is added or resumed waits for the fetch under way,
// which with kgo's 5 s would hold up a lane that paused for a moment.
const fetchWait = 250 * time.Millisecond

// groupClient is the member of the group, and reads the sources.
func (c *Consumer) groupClient() (*kgo.Client, error) {
	return client.New(c.options([]kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
	}, []kgo.Opt{
		kgo.ConsumerGroup(c.cfg.Group),
		kgo.ConsumeTopics(c.cfg.Topics...),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // see outofrange.go
		kgo.KeepControlRecords(),                    // see withoutMarkers
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(c.assigned),
		kgo.OnPartitionsRevoked(c.revoked),
		kgo.OnPartitionsLost(c.lost),
		kgo.AdjustFetchOffsetsFn(c.offered),
	})...)
}

// retryFetch bounds an answer to the retry client: what is read besides the budget for parked records.
const retryFetch = 2 << 20

// retryClient reads the tiers, always read committed, since redrive writes in transactions.
func (c *Consumer) retryClient() (*kgo.Client, error) {
	return client.New(c.options([]kgo.Opt{
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(retryFetch),
		kgo.MetadataMinAge(time.Second),
	}, []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
	})...)
}

// producerClient writes copies to the partition that the record has for life.
func (c *Consumer) producerClient() (*kgo.Client, error) {
	return client.New(c.producerOptions(kgo.ProducerBatchMaxBytesFn(c.batchLimit))...)
}

// soloClient writes copies that are large, each in a batch of its own. How long a request may be is all that bounds them before
// compression (kgo.BrokerMaxWriteBytes, 100 MiB by default like the brokers' socket.request.max.bytes, beyond which these hang
// up); the user's kgo.ProducerBatchMaxBytes is for batches, and a record that is larger has one of its own.
func (c *Consumer) soloClient() (*kgo.Client, error) {
	limit, _ := c.retryCl.OptValue(kgo.BrokerMaxWriteBytes).(int32)
	return client.New(c.producerOptions(kgo.ProducerBatchMaxBytes(limit), kgo.ProducerLinger(0))...)
}

func (c *Consumer) producerOptions(more ...kgo.Opt) []kgo.Opt {
	before, behind := c.headerKeepers()
	return c.options([]kgo.Opt{
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(time.Second),
		before,
	}, append(more,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(1<<20), // beyond what the lanes' bounds let through
		behind,
	))
}

func (c *Consumer) options(defaults, owned []kgo.Opt) []kgo.Opt {
	opts := append([]kgo.Opt{
		kgo.SoftwareNameAndVersion("siding", softwareVersion()),
		kgo.WithLogger(clientLog{kslog.New(c.cfg.Logger), &c.quiet}),
	}, defaults...)
	// A context of the user's that ends would take the clients away before the drain is over.
	return append(append(append(opts, c.cfg.Kafka...), kgo.WithContext(context.Background())), owned...)
}

// clientLog passes kgo's warnings on, and the rest where the logger takes debug messages. A client that cannot reach a broker says so
// several times a second: of the same message about the same broker there is one in ten seconds, with how many it stands for, whichever
// client they come from; the others are debug messages. kgo.WithLogger in Config.Kafka replaces it.
type clientLog struct {
	*kslog.Logger
	quiet *quiet
}

func (l clientLog) Level() kgo.LogLevel {
	if level := l.Logger.Level(); level != kgo.LogLevelInfo {
		return level
	}
	return kgo.LogLevelWarn
}

// Log implements kgo.Logger.
func (l clientLog) Log(level kgo.LogLevel, message string, about ...any) {
	if level != kgo.LogLevelWarn && level != kgo.LogLevelError {
		l.Logger.Log(level, message, about...)
		return
	}
	times, due := l.quiet.due([]byte("client "+message+aboutBroker(about)), logEvery)
	switch {
	case !due:
		level = kgo.LogLevelDebug
	case times > 1:
		about = append(slices.Clip(about), "lines", times)
	}
	l.Logger.Log(level, message, about...)
}

// aboutBroker is the broker that a message of kgo is about, if it names one.
func aboutBroker(about []any) string {
	for i := 0; i+1 < len(about); i += 2 {
		if about[i] == "broker" {
			return fmt.Sprint(" ", about[i+1])
		}
	}
	return ""
}

// optName is the option's name as the user wrote it.
func optName(opt any) string {
	name := runtime.FuncForPC(reflect.ValueOf(opt).Pointer()).Name()
	return "kgo." + name[strings.LastIndexByte(name, '.')+1:]
}

// softwareVersion is what brokers log for client.software.version.
func softwareVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == modulePath && m.Version != "" && m.Version[0] == 'v' {
				return m.Version
			}
		}
	}
	return "devel"
}

const modulePath = "github.com/sidingkafka/siding"
