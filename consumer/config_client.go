package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// refusedOptions are the kgo options that siding's own would silently override, or that would break
// a promise. kgo itself refuses some others for a client without a group.
var refusedOptions = []struct{ option, why string }{
	{"ConsumerGroup", "set Config.Group"},
	{"ShareGroup", "siding consumes as a consumer group"},
	{"ConsumeTopics", "set Config.Topics"},
	{"ConsumePartitions", "partitions come from the group"},
	{"ConsumeRegex", "regex subscriptions are not supported: name the topics in Config.Topics"},
	{"ConsumeStartOffset", "set Config.Start"},
	{"ConsumeResetOffset", "siding goes to the log's start, and logs what was lost; see Config.Start for a partition without an offset"},
	{"OnOffsetsFetched", "siding reads what it has stored with the offsets"},
	{"AdjustFetchOffsetsFn", "siding decides where a partition starts; see Config.Start"},
	{"BlockRebalanceOnPoll", "siding polls while lanes drain"},
	{"AutoCommitInterval", "set Config.CommitInterval"},
	{"GroupProtocol", "siding speaks the consumer protocol"},
	{"TransactionalID", "at-least-once delivery has no transactions"},
	{"DisableIdempotentWrite", "a copy must not be written twice by a retry"},
	{"AllowIdempotentProduceCancellation", "a copy in flight cannot be cancelled safely"},
	{"RecordRetries", "a copy is repeated until it is safe"},
	{"RecordDeliveryTimeout", "a copy is repeated until it is safe"},
	{"ManualFlushing", "copies are sent as they come"},
	{"MaxBufferedRecords", "siding bounds the copies in flight, a lane at a time"},
	{"MaxBufferedBytes", "siding bounds the copies in flight, a lane at a time"},
	{"DefaultProduceTopicAlways", "copies name their topic"},
	{"WithPools", "siding keeps records beyond the poll that brought them"},
	{"AllowAutoTopicCreation", "siding provisions what it needs, with the right settings; see Config.Provision"},
}

// probe builds a client from which options can be read. It opens no connection and logs nothing.
func probe(opts ...kgo.Opt) (*kgo.Client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return client.New(append(slices.Clip(opts), kgo.WithContext(ctx), kgo.WithLogger(kgo.BasicLogger(io.Discard, kgo.LogLevelNone, nil)))...)
}

// clientProblems lists options of the user that siding refuses, and combinations that do not work.
func clientProblems(kafka []kgo.Opt, drain time.Duration) (all []error) {
	if len(kafka) == 0 {
		all = append(all, errors.New("no options in Kafka: name at least the brokers, with kgo.SeedBrokers(…)"))
	}
	opts := slices.DeleteFunc(slices.Clone(kafka), func(o kgo.Opt) bool { return o == nil })
	if len(opts) < len(kafka) {
		all = append(all, errors.New("an option in Kafka is nil"))
	}
	user, err := probe(opts...)
	if err != nil {
		// kgo names no option in its error about acks
		var failed error
		if user, failed = probe(append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))...); failed == nil {
			all = append(all, errors.New("option kgo.RequiredAcks in Kafka is siding's: a copy is safe when all in-sync replicas have it"))
			err = nil
		}
	}
	if err != nil {
		return append(all, fmt.Errorf("the options in Kafka: %w (remove the options that siding sets itself: group, callbacks, commits, acks)", err))
	}
	defer user.Close()
	plain, err := probe()
	if err != nil {
		return append(all, err)
	}
	defer plain.Close()
	for _, o := range refusedOptions {
		// DeepEqual finds functions equal only if both are nil.
		if !reflect.DeepEqual(user.OptValues(o.option), plain.OptValues(o.option)) {
			all = append(all, fmt.Errorf("option kgo.%s in Kafka is siding's: %s", o.option, o.why))
		}
	}
	brokers, _ := user.OptValue(kgo.SeedBrokers).([]string)
	for _, broker := range brokers {
		if !isAddress(broker) {
			all = append(all, fmt.Errorf("kgo.SeedBrokers in Kafka has %q, which is not host:port, such as kafka-1:9092: name each broker by itself, without a scheme", broker))
		}
	}
	rebalance, _ := user.OptValue(kgo.RebalanceTimeout).(time.Duration)
	if need := stuckAfter + minCommitTime; drain >= rebalance-need {
		all = append(all, fmt.Errorf("DrainTimeout is %v: with %v more for stuck handlers and the last commit, it must be under the rebalance timeout, %v (kgo.RebalanceTimeout)",
			drain, need, rebalance))
	}
	return all
}

// isAddress reports whether kgo can dial it: host:port, or a host or an IPv6 address without a
// port. kgo takes any other text for the name of a host, which it asks for for ever.
func isAddress(broker string) bool {
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(broker, "["), "]"), "9092"
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return isPort(port)
	}
	return host != "" && !strings.ContainsAny(host, ":/, \t\r\n[]@") && isPort(port)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// stuckAfter is the time that a cancelled handler has to return.
const stuckAfter = time.Second

// minCommitTime is the time reserved for the last commit of a revoke.
const minCommitTime = 2 * time.Second

// commitTimeFor is the time that a commit may take: the rest of the rebalance timeout after a
// drain.
//
// A commit takes longer if the coordinator accepts connections but never answers. kgo's requests
// wait for their connection even after their context ended: kgo.RequestTimeoutOverhead (10 s) per
// try, and behind earlier requests to the same broker. One such wait took a minute. siding does not
// abandon the commit meanwhile, because the next one must not overtake it. A coordinator that
// answers no commit lets no member join either.
func commitTimeFor(cl *kgo.Client, drain time.Duration) time.Duration {
	rebalance, _ := cl.OptValue(kgo.RebalanceTimeout).(time.Duration)
	return min(max(rebalance-drain-stuckAfter-time.Second, minCommitTime), 15*time.Second)
}
