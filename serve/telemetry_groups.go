package serve

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// partitionKey says what the partitions are that are counted.
const partitionKey = attribute.Key("siding.partition.state")

// mostGroups bounds the groups of a topic that metrics have: those that need somebody first.
const mostGroups = 50

// groupInstruments are about the consumer groups of siding on the topics' sources, so that teams
// which scrape the server alone see what consumers would tell.
type groupInstruments struct {
	members, lag, parked, partitions metric.Int64ObservableUpDownCounter
}

func (in *groupInstruments) register(sum func(i *metric.Int64ObservableUpDownCounter, name, unit, description string)) {
	sum(&in.members, "siding.group.members", "{member}", "Members of the consumer groups of siding that have committed on the topic's source.")
	sum(&in.lag, "siding.group.lag", "{record}", "Offsets between a group's commits on the source and the ends of its log.")
	sum(&in.parked, "siding.group.parked", "{record}", "Offsets between a group's commits on the retry topics and the ends of their logs.")
	sum(&in.partitions, "siding.group.partitions", "{partition}", "Partitions of the source by what keeps a group's records there from running.")
}

// reportGroups observes the groups of a topic.
func reportGroups(cluster *watch.Cluster, o metric.Observer, in *groupInstruments, t *watch.Topic, at func(...attribute.KeyValue) metric.ObserveOption) {
	n := 0
	all := cluster.Guards.Consumers(t.Source)
	for i := range all.Groups {
		g := &all.Groups[i]
		if !g.Siding {
			continue // a tool's group may live for a minute
		}
		if n++; n > mostGroups {
			return
		}
		group := semconv.MessagingConsumerGroupName(g.Group)
		if g.GroupState != "" {
			o.ObserveInt64(in.members, int64(len(g.Members)), at(group))
		}
		if g.Lag != nil {
			o.ObserveInt64(in.lag, *g.Lag, at(group))
		}
		if g.Parked != nil {
			o.ObserveInt64(in.parked, *g.Parked, at(group))
		}
		for state, n := range partitionsOf(g) {
			o.ObserveInt64(in.partitions, n, at(group, partitionKey.String(state)))
		}
	}
}

// partitionsOf counts partitions by what keeps their records from running.
func partitionsOf(g *api.Consumer) map[string]int64 {
	n := map[string]int64{"held": 0, "strained": 0}
	for _, kind := range consumers.Kinds {
		n[kind] = 0
	}
	if g.Guard != nil {
		n[g.Guard.State] = int64(g.Guard.Partitions)
	}
	for i := range g.Troubles {
		n[g.Troubles[i].Kind] += int64(len(g.Troubles[i].Partitions))
	}
	return n
}
