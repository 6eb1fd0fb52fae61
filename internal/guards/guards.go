// Package guards reads from committed offsets which consumer groups hold records of a topic back,
// or run them in a strain.
package guards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// Guard is what the commits of a group say of a topic. It counts partitions, not members: commits
// do not say which members the group has now.
type Guard struct {
	Group, Topic   string
	Held           bool      // in some partition; else all are strained
	Since          time.Time // when the first of them began
	Class          string    // of most failures there; empty if unknown
	Partitions, Of int       // so many of the topic's partitions are held or strained
	// Waiting is how many offsets lie between the commits of those partitions and the logs' ends;
	// -1 if an end is not known.
	Waiting int64
}

// Read returns the guards of groups on topics that are not closed, by topic and group. The error
// is about some groups or topics; the others' guards are returned beside it. A group that does not
// exist has none.
func Read(ctx context.Context, adm *kadm.Client, groups, topics []string) (found []Guard, err error) {
	if len(groups) == 0 || len(topics) == 0 {
		return nil, nil
	}
	var errs []error
	held := map[string]bool{} // topics
	commits := map[string]kadm.OffsetResponses{}
	for group, r := range adm.FetchManyOffsets(ctx, groups...) {
		if r.Err != nil && !errors.Is(r.Err, kerr.GroupIDNotFound) {
			errs = append(errs, fmt.Errorf("fetch offsets of group %q: %w", group, r.Err))
			continue
		}
		for _, topic := range topics {
			for _, o := range r.Fetched[topic] {
				if o.Err == nil && commitmark.ParseGuard(o.Metadata, o.At).State != 0 {
					held[topic], commits[group] = true, r.Fetched
				}
			}
		}
	}
	if len(held) == 0 {
		return nil, errors.Join(errs...)
	}
	ends, err := adm.ListEndOffsets(ctx, slices.Collect(maps.Keys(held))...)
	if err != nil {
		errs = append(errs, fmt.Errorf("list end offsets: %w", err))
	}
	for group, of := range commits {
		for topic := range held {
			if g := Of(of[topic], ends[topic]); g.Partitions > 0 {
				g.Group, g.Topic = group, topic
				found = append(found, g)
			}
		}
	}
	slices.SortFunc(found, func(a, b Guard) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group))
	})
	return found, errors.Join(errs...)
}

// Of returns what commits on a topic with these ends say, without names. Partitions is 0 if they
// say that the guard is closed.
func Of(commits map[int32]kadm.OffsetResponse, ends map[int32]kadm.ListedOffset) (g Guard) {
	g.Of = max(len(ends), len(commits))
	for partition, o := range commits {
		said := commitmark.ParseGuard(o.Metadata, o.At)
		if o.Err != nil || said.State == 0 {
			continue
		}
		g.Partitions++
		g.Held = g.Held || said.State == commitmark.Held
		if g.Since.IsZero() || said.Since.Before(g.Since) {
			g.Since, g.Class = said.Since, said.Class
		}
		if end, ok := ends[partition]; !ok || end.Err != nil {
			g.Waiting = -1
		} else if g.Waiting >= 0 {
			g.Waiting += max(0, end.Offset-o.At)
		}
	}
	return g
}
