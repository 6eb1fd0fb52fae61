// Package capability asks a cluster which of siding's features work on it. It only reads: it
// creates, writes and commits nothing. What a broker does not say beforehand stays unknown.
package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// State says how far a feature works.
type State string

// The states of a feature.
const (
	Works   State = "works"
	Limited State = "limited" // it works, but for what Why says
	Lacking State = "lacking" // it does not work
	Unknown State = "unknown" // the cluster does not say
)

// Finding is the state of a feature. Why is the reason why it does not work, and Do the remedy;
// both are empty for a feature that works.
type Finding struct {
	Feature string
	State   State
	Why, Do string
}

// Cluster is the cluster that was asked.
type Cluster struct {
	ID      string
	Brokers int
	// Version is a guess by the requests that the brokers know.
	Version string
}

// Ask returns what a cluster is, and the state of each feature, with those of redrive if asked for.
// Its error means that the cluster cannot be asked.
func Ask(ctx context.Context, adm *kadm.Client, redrive bool) (Cluster, []Finding, error) {
	meta, err := adm.Metadata(ctx)
	if err != nil {
		return Cluster{}, nil, fmt.Errorf("ask the cluster for its brokers: %w", err)
	}
	versions, err := adm.ApiVersions(ctx)
	if err != nil && len(versions) == 0 {
		return Cluster{}, nil, fmt.Errorf("ask the brokers for the requests that they know: %w", err)
	}
	a := answers{meta: meta, versions: versions.Sorted()}
	c := Cluster{ID: meta.Cluster, Brokers: len(meta.Brokers), Version: a.guess()}
	var all []Finding
	for _, f := range features {
		if redrive || !f.redrive {
			all = append(all, a.find(f))
		}
	}
	all = append(all, a.topicIDs(), room(ctx, adm))
	return c, a.known(all), nil
}

// answers is what the brokers said.
type answers struct {
	meta     kadm.Metadata
	versions []kadm.BrokerApiVersions
}

// A feature needs requests of a version, of every broker.
type feature struct {
	name    string
	redrive bool // only redrive needs it
	needs   []need
	without State  // its state if a broker does not know a request
	do      string // what to do then
}

type need struct {
	key kmsg.Key
	min int16
}

const upgrade = "upgrade the brokers; docs/versions.md has the version that each feature needs"

// features are in the order in which they are shown. The versions are those that the code requests,
// by the protocol's description in Kafka 4.3.
var features = []feature{
	{name: "handlers run, and failures are tried again", without: Lacking, do: upgrade, needs: []need{
		{kmsg.Produce, 3}, {kmsg.Fetch, 4}, {kmsg.ListOffsets, 1}, {kmsg.Metadata, 5}, {kmsg.OffsetCommit, 2}, {kmsg.OffsetFetch, 1}, {kmsg.JoinGroup, 0},
	}},
	{name: "retry topics are created, and grow with their source", without: Limited, do: "create them yourself: the error of a start has the commands", needs: []need{{kmsg.CreateTopics, 1}, {kmsg.CreatePartitions, 0}}},
	{name: "settings of retry topics are checked", without: Limited, do: "check retention and cleanup.policy yourself", needs: []need{{kmsg.DescribeConfigs, 0}}},
	{name: "brokers refuse a commit to a topic that was recreated", without: Limited, do: "stop the consumers before you recreate a topic", needs: []need{{kmsg.OffsetCommit, 10}}},
	{name: "an open transaction that holds a partition up is named", without: Limited, do: upgrade, needs: []need{{kmsg.DescribeProducers, 0}}},
	{name: "the group protocol KIP-848 (kgo.ServerSideBalancer)", without: Limited, do: "use the classic protocol, which is the default", needs: []need{{kmsg.ConsumerGroupHeartbeat, 0}}},
	{name: runs, redrive: true, without: Lacking, do: upgrade, needs: []need{{kmsg.InitProducerID, 1}, {kmsg.AddPartitionsToTxn, 0}, {kmsg.EndTxn, 0}}},
	{name: "a run looks at the open transactions of a dead process before it ends them", redrive: true, without: Limited, do: upgrade, needs: []need{{kmsg.DescribeProducers, 0}, {kmsg.DescribeTransactions, 0}}},
	{name: "redrive prune", redrive: true, without: Lacking, do: "let the retention of the dead-letter topic delete letters", needs: []need{{kmsg.DeleteRecords, 0}}},
}

const runs = "redrive run"

// find returns the state of a feature by the requests that the brokers know.
func (a answers) find(f feature) Finding {
	var lacks, silent []string
	for _, b := range a.versions {
		if b.Err != nil {
			silent = append(silent, fmt.Sprintf("broker %d did not say which requests it knows: %v", b.NodeID, b.Err))
			continue
		}
		for _, n := range f.needs {
			switch most, known := b.KeyMaxVersion(n.key.Int16()); {
			case !known:
				lacks = append(lacks, fmt.Sprintf("broker %d does not know %s", b.NodeID, n.key.Name()))
			case most < n.min:
				lacks = append(lacks, fmt.Sprintf("broker %d knows %s up to version %d, and %d is needed", b.NodeID, n.key.Name(), most, n.min))
			}
		}
	}
	switch {
	case len(lacks) > 0:
		return Finding{f.name, f.without, few(lacks), f.do}
	case len(silent) > 0:
		return Finding{f.name, Unknown, few(silent), "ask again when all brokers are up"}
	}
	return Finding{Feature: f.name, State: Works}
}

// few joins the first of many texts.
func few(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:most], "; "), len(all)-most)
}

// topicIDs returns whether topics have ids, by which one that was recreated is recognized.
func (a answers) topicIDs() Finding {
	f := Finding{Feature: "a topic that was recreated is recognized", State: Unknown, Why: "the user sees no topic", Do: "ask as a user who may describe a topic"}
	for _, t := range a.meta.Topics {
		if t.Err != nil || t.IsInternal {
			continue
		}
		if t.ID != (kadm.TopicID{}) {
			return Finding{Feature: f.Feature, State: Works}
		}
		f.State, f.Why, f.Do = Limited, "topics have no ids", "stop the consumers before you recreate a topic, and delete the group's offsets on it"
	}
	return f
}

// marks are the bytes that a consumer asks for beside a committed offset: the default of
// offset.metadata.max.bytes.
const marks = 4096

// room returns whether brokers store the marks beside a committed offset.
func room(ctx context.Context, adm *kadm.Client) Finding {
	const setting = "offset.metadata.max.bytes"
	f := Finding{Feature: "records that finished out of order do not run again after a crash", State: Unknown, Do: "ask as a user with DESCRIBE_CONFIGS on the cluster"}
	brokers, err := adm.ListBrokers(ctx)
	if err != nil || len(brokers) == 0 {
		f.Why = fmt.Sprintf("the brokers cannot be listed: %v", err)
		return f
	}
	configs, err := adm.DescribeBrokerConfigs(ctx, brokers[0].NodeID)
	if err == nil {
		var c kadm.ResourceConfig
		c, err = configs.On(strconv.Itoa(int(brokers[0].NodeID)), nil)
		err = errors.Join(err, c.Err)
		for _, c := range c.Configs {
			if n, bad := strconv.Atoi(c.MaybeValue()); c.Key == setting && bad == nil {
				if n >= marks {
					return Finding{Feature: f.Feature, State: Works}
				}
				return Finding{f.Feature, Limited, fmt.Sprintf("brokers store %d bytes with an offset (%s), and %d are asked for: some records run again", n, setting, marks), "set " + setting + " to " + strconv.Itoa(marks) + " on the brokers"}
			}
		}
	}
	f.Why = "the brokers do not say what " + setting + " is"
	if err != nil {
		f.Why += ": " + err.Error()
	}
	if !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		f.Do = "look it up: it has to be " + strconv.Itoa(marks)
	}
	return f
}

// guess returns the version of the oldest broker, as far as one can tell.
func (a answers) guess() string {
	var all []string
	for _, b := range a.versions {
		if b.Err == nil {
			all = append(all, b.VersionGuess())
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// known adds what is known of services that speak Kafka's protocol, and which brokers were tried.
func (a answers) known(all []Finding) []Finding {
	const tried = "these brokers were tried with siding"
	not := func(brokers string) Finding {
		return Finding{tried, Unknown, "siding is tried on Apache Kafka 3.9.2 and 4.3.0, and these are " + brokers, "try it first: go run ./examples/quickstart -brokers host:port counts every record"}
	}
	host := func(suffix string) bool {
		return slices.ContainsFunc(a.meta.Brokers, func(b kadm.BrokerDetail) bool { return strings.HasSuffix(b.Host, suffix) })
	}
	old := a.find(feature{without: Lacking, needs: []need{{kmsg.Fetch, 17}}})
	switch {
	case host(".servicebus.windows.net"):
		for i := range all {
			if all[i].Feature == runs {
				all[i] = Finding{runs, Unknown, "Azure Event Hubs refuses parts of transactions (azure-event-hubs-for-kafka, issues 209 and 252)", "try a run of one letter first"}
			}
		}
		return append(all, not("Azure Event Hubs"))
	case strings.HasPrefix(a.meta.Cluster, "redpanda."):
		return append(all, not("Redpanda"))
	case old.State == Unknown:
		return append(all, Finding{tried, Unknown, old.Why, old.Do})
	case old.State == Lacking:
		return append(all, not("older than 3.9: "+a.guess()))
	}
	return append(all, Finding{Feature: tried, State: Works})
}
