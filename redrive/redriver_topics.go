package redrive

import (
	"cmp"
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/retrytopics"
)

// DeadLetterTopic is a dead-letter topic of the cluster, as the brokers describe it: nothing of it
// is read.
type DeadLetterTopic struct {
	// Topic is the dead-letter topic. Source is its source, and Ledger the name of its ledger, both
	// by Config.Naming. Ledger is empty if the naming needs a group for it and the topic names
	// none.
	Topic, Source, Ledger string
	// TopicID and LedgerID are the ids of these two topics, which recreated topics change. They are
	// zero if the brokers have no ids, and LedgerID if the ledger does not exist.
	TopicID, LedgerID [16]byte
	// Group is the group of the topic, if the naming has one topic for each group.
	Group string
	// SourceSeen and LedgerSeen report whether these topics exist and the user may see them.
	SourceSeen, LedgerSeen bool
	// Partitions is the number of partitions.
	Partitions int
	// Records is the distance from the start to the end of all partitions: the letters, resolved or
	// not, and the markers of transactions. It is -1 if a partition did not answer.
	Records int64
}

// Topics lists the dead-letter topics that the user may see, by name. It takes three requests to
// each broker, however many topics there are. If some offsets cannot be listed, it returns the
// topics, perhaps with an error. To count open letters, read the ledger ([dlq.Ledger.Summarize]).
func (r *Redriver) Topics(ctx context.Context) ([]DeadLetterTopic, error) {
	adm, err := client.NewAdmin(r.cfg.Kafka...)
	if err != nil {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	defer adm.Close()
	all, err := adm.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("redrive: list topics: %w", err)
	}
	var found []DeadLetterTopic
	var names []string
	for _, topic := range all.Names() {
		name, ok := r.cfg.Naming.Parse(topic)
		if !ok || name.Kind != retrytopics.KindDLQ {
			continue
		}
		t := DeadLetterTopic{Topic: topic, Source: name.Source, Group: name.Group, SourceSeen: all.Has(name.Source), TopicID: all[topic].ID, Partitions: len(all[topic].Partitions), Records: -1}
		if s, err := r.cfg.Naming.Siblings(name.Source, name.Group); err == nil && s.DLQ == topic {
			t.Ledger, t.LedgerSeen, t.LedgerID = s.Ledger, all.Has(s.Ledger), all[s.Ledger].ID
		}
		found, names = append(found, t), append(names, topic)
	}
	if len(names) == 0 {
		return nil, nil
	}
	starts, err1 := adm.ListStartOffsets(ctx, names...)
	ends, err2 := adm.ListEndOffsets(ctx, names...)
	for i := range found {
		found[i].Records = distance(starts[found[i].Topic], ends[found[i].Topic], found[i].Partitions)
	}
	if err := cmp.Or(err1, err2); err != nil {
		return found, fmt.Errorf("redrive: list offsets: %w", err)
	}
	return found, nil
}

// distance adds up the distances of the offsets of all partitions; -1 if one is not known.
func distance(starts, ends map[int32]kadm.ListedOffset, partitions int) (n int64) {
	for p := range int32(partitions) {
		start, ok := starts[p]
		end, ok2 := ends[p]
		if !ok || !ok2 || start.Err != nil || end.Err != nil {
			return -1
		}
		n += max(end.Offset-start.Offset, 0)
	}
	return n
}
