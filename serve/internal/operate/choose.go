package operate

import (
	"context"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// choose returns a topic on which the sender of the request has a role, and a selection of its
// letters. A filter by what is in the records takes the role reader.
func choose(ctx context.Context, d *Desk, who *access.Identity, name string, f *api.Filter, least access.Role) (*watch.Topic, *selection.Selection, error) {
	if len(f.Key)+len(f.Header)+len(f.Where) > 0 {
		least = max(least, access.Reader)
	}
	t, err := TopicFor(ctx, d, who, name, least)
	if err != nil {
		return nil, nil, err
	}
	partitions := max(int32(t.Partitions), t.Index.Partitions()) // some may have come
	sel, err := selection.Compile(f, partitions, d.cfg.View)
	if err != nil {
		return nil, nil, failure.NewProblem(api.BadFilter, "%v", err)
	}
	return t, sel, nil
}

// chooseOpen is choose for what is done to open letters.
func chooseOpen(ctx context.Context, d *Desk, who *access.Identity, name string, f *api.Filter) (*watch.Topic, *selection.Selection, error) {
	if len(f.State) > 0 {
		return nil, nil, failure.NewProblem(api.BadFilter, "state: only open letters can be chosen here: leave it out")
	}
	return choose(ctx, d, who, name, f, access.Operator)
}

// TopicFor returns a topic on which the sender of the request has a role. To a page that was left
// open over a restart a server that knows no topic yet must not say that there is none.
func TopicFor(ctx context.Context, d *Desk, who *access.Identity, name string, least access.Role) (*watch.Topic, error) {
	has := who.On(name)
	t := d.cfg.Cluster.Topic(name)
	if t == nil && has != access.None {
		if !d.cfg.Cluster.AwaitListed(ctx) {
			return nil, failure.NewProblem(api.NotRunning, NotListed)
		}
		t = d.cfg.Cluster.Topic(name)
	}
	switch {
	case has == access.None || t == nil:
		return nil, failure.NewProblem(api.NoTopic, "there is no dead-letter topic %q that %s may see", name, who.Name)
	case has < least:
		return nil, failure.NewProblem(api.NoRole, "%s has the role %s on %s, and this takes the role %s", who.Name, has, name, least)
	}
	return t, nil
}

// topicsFor returns the topics on which the sender of the request has a role, by name.
func topicsFor(d *Desk, who *access.Identity, least access.Role) (all []*watch.Topic) {
	for name, t := range d.cfg.Cluster.All() {
		if who.On(name) >= least {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *watch.Topic) int { return strings.Compare(a.DeadLetterTopic.Topic, b.DeadLetterTopic.Topic) })
	return all
}

// NotListed is the answer while a server that has just started knows no topic.
const NotListed = "the dead-letter topics are not known yet: ask again; the server's log says if something is wrong"
