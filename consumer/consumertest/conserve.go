package consumertest

// Asserts that no record was lost.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Conserved waits until every record that Produce wrote to a consumed topic is in exactly one
// place: handled, discarded by a handler or a policy, parked in a tier, in the dead-letter topic,
// or not consumed yet. A dead letter that its ledger calls redriven is where its copy is. A record
// that was discarded under a policy with NoteDiscards has its note in the ledger, too.
func (k *Kafka) Conserved() {
	k.tb.Helper()
	patience := k.patience()
	deadline := time.Now().Add(patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, patience/20, longestPause) {
		problems, err := k.misplaced()
		switch {
		case time.Now().Before(deadline) && (err != nil || len(problems) > 0):
			time.Sleep(pause)
		case err != nil:
			k.tb.Fatalf("consumertest: where the records are could not be read: %v", err)
		case len(problems) > 0:
			k.tb.Fatalf("consumertest: %d records are not in exactly one place%s", len(problems), k.describe(problems))
		default:
			return
		}
	}
}

// longestPause bounds the pause between two looks of Conserved.
const longestPause = 5 * time.Minute

// describe says of the first misplaced records where they are, in the order of their positions.
func (k *Kafka) describe(problems map[position]places) string {
	const most = 10
	all := slices.SortedFunc(maps.Keys(problems), position.compare)
	shown := all[:min(len(all), most)]
	details := k.whereaboutsOf(shown...)
	var b strings.Builder
	for _, at := range shown {
		fmt.Fprintf(&b, "\n%v: %v%s", at, problems[at], details[at])
	}
	if more := len(all) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}

// places counts where a record was found. unnoted are its discards that lack their note.
type places struct{ handled, discarded, unnoted, parked, dead, unread int }

func (p places) sum() int {
	return min(p.handled, 1) + min(p.discarded, 1) + min(p.parked, 1) + min(p.dead, 1) + min(p.unread, 1)
}

func (p places) String() string {
	var all []string
	add := func(text string, n int) {
		if n > 0 {
			all = append(all, text+" "+times(n))
		}
	}
	add("handled", p.handled)
	add("discarded", p.discarded)
	if p.unnoted > 0 {
		all = append(all, "without its note in the ledger")
	}
	add("in a retry topic", p.parked)
	add("dead-lettered", p.dead)
	if p.unread > 0 {
		all = append(all, "not consumed yet")
	}
	if len(all) == 0 {
		return "in no place"
	}
	return strings.Join(all, ", and ")
}

// misplaced returns the records that are not in exactly one place.
func (k *Kafka) misplaced() (problems map[position]places, err error) {
	ctx, cancel := k.within()
	defer cancel()
	k.mu.Lock()
	produced, siblings := slices.Clone(k.produced), maps.Clone(k.siblings)
	k.mu.Unlock()

	found := map[position]*places{}
	for _, r := range produced {
		if _, ok := siblings[r.Topic]; ok {
			found[positionOf(r)] = &places{}
		}
	}
	for topic, s := range siblings {
		var committed []kadm.OffsetResponses
		for _, group := range s.groups {
			offsets, err := k.admin.FetchOffsets(ctx, group)
			if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
				return nil, err
			}
			committed = append(committed, offsets)
		}
		floor := func(topic string, partition int32) int64 {
			for _, offsets := range committed {
				if o, ok := offsets.Lookup(topic, partition); ok {
					return o.At
				}
			}
			return 0
		}
		back, err := findBroughtBack(ctx, k, topic, s)
		if err != nil {
			return nil, err
		}
		for at, p := range found {
			if at.topic == topic && at.offset >= floor(topic, at.partition) {
				p.unread = 1
			}
		}
		for at := range back.copies {
			if p := found[back.origin(at)]; p != nil {
				k.journal.addTo(p, at)
				if at.offset >= floor(topic, at.partition) {
					p.unread = 1
				}
			}
		}
		for _, tier := range s.tiers {
			err := k.scan(ctx, tier.Topic, func(r *kgo.Record, m headers.Meta) {
				if p := found[back.origin(originalOf(m.Original))]; p != nil && r.Offset >= floor(tier.Topic, r.Partition) && slices.Contains(s.groups, m.Group) {
					p.parked++
				}
			})
			if err != nil {
				return nil, err
			}
		}
		for _, name := range s.dlqs {
			err := k.scan(ctx, name, func(r *kgo.Record, m headers.Meta) {
				if p := found[back.origin(originalOf(m.Original))]; p != nil && slices.Contains(s.groups, m.Group) && !back.letters[positionOf(r)] {
					p.dead++
				}
			})
			if err != nil {
				return nil, err
			}
		}
		if err := k.countUnnoted(ctx, topic, s, func(at position) *places { return found[back.origin(at)] }); err != nil {
			return nil, err
		}
	}
	problems = map[position]places{}
	for at, p := range found {
		k.journal.addTo(p, at)
		if p.sum() != 1 || p.unnoted > 0 {
			problems[at] = *p
		}
	}
	return problems, nil
}

// countUnnoted counts the discarded records of a source that lack their note in the ledger. A note
// that was pruned was there. of returns the places of a record, or nil.
func (k *Kafka) countUnnoted(ctx context.Context, source string, s consumed, of func(position) *places) error {
	left := k.journal.notedOf(source)
	for _, ledger := range s.ledger {
		byKey := map[string]position{}
		for at, group := range left {
			n := dlq.DiscardNote{Group: group, Partition: at.partition, Offset: at.offset, Original: headers.Position{Topic: at.topic}}
			byKey[noteKey(n.Record(ledger))] = at
		}
		if len(byKey) == 0 {
			break
		}
		if err := k.scan(ctx, ledger, func(r *kgo.Record, _ headers.Meta) { delete(left, byKey[noteKey(r)]) }); err != nil {
			return err
		}
	}
	for at := range left {
		if p := of(at); p != nil {
			p.unnoted++
		}
	}
	return nil
}

// noteKey identifies a record of a ledger: keys of notes do not have the partition.
func noteKey(r *kgo.Record) string { return fmt.Sprintf("%d/%s", r.Partition, r.Key) }

// scan reads all records that a topic holds now.
func (k *Kafka) scan(ctx context.Context, topic string, do func(*kgo.Record, headers.Meta)) error {
	starts, err := k.admin.ListStartOffsets(ctx, topic)
	if err != nil || errors.Is(starts.Error(), kerr.UnknownTopicOrPartition) {
		return err // a deleted topic has no records
	}
	ends, err := k.admin.ListCommittedOffsets(ctx, topic)
	if err = errors.Join(err, starts.Error(), ends.Error()); err != nil {
		return err
	}
	left := map[int32]int64{}
	for p, end := range ends[topic] {
		if start, _ := starts.Lookup(topic, p); end.Offset > start.Offset {
			left[p] = end.Offset
		}
	}
	if len(left) == 0 {
		return nil
	}
	return k.read(ctx, topic, func(r *kgo.Record) (done bool) {
		if end, ok := left[r.Partition]; ok && r.Offset < end {
			if !r.Attrs.IsControl() {
				m, _ := headers.Parse(r.Headers) // a malformed record is no copy
				do(r, m)
			}
			if r.Offset == end-1 {
				delete(left, r.Partition)
			}
		}
		return len(left) == 0
	})
}
