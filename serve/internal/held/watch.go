package held

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/pulse"
)

const (
	// every is the wait after a look. A look lists the groups, fetches their commits, and asks for
	// the ends of the topics that are held.
	every = 30 * time.Second
	// keeps is how long a guard counts that cannot be read again: a group gets another coordinator
	// sooner.
	keeps = time.Minute
)

// The states of a guard in the API.
const (
	Held     = "held"
	Strained = "strained"
)

// Watch looks again and again which groups hold topics. It is safe for concurrent use.
type Watch struct {
	log    *slog.Logger
	topics func() []string

	turn   sync.Mutex // held for a look
	adm    *kadm.Client
	logged bool // that not all could be read

	mu   sync.Mutex
	seen map[key]seen
	of   map[string][]api.Guard // of seen, by topic
}

type key struct{ topic, group string }

// seen is a guard as a look saw it last.
type seen struct {
	api.Guard
	at time.Time
}

// New returns a watch of topics, which are asked for at each look.
func New(topics func() []string, log *slog.Logger) *Watch { return &Watch{topics: topics, log: log} }

// Run looks until ctx ends, from when the topics are known. It has a client of its own: brokers
// answer the requests of a connection one after the other, and a coordinator may be slow.
func (w *Watch) Run(ctx context.Context, known <-chan struct{}, opts ...kgo.Opt) {
	cl, err := client.New(slices.Concat(opts, []kgo.Opt{kgo.RequestTimeoutOverhead(pulse.Patience), kgo.RetryTimeout(pulse.Patience)})...)
	if err != nil {
		w.log.Error("siding: it is not known which groups hold records back", "error", err)
		return
	}
	defer cl.Close()
	w.use(kadm.NewClient(cl))
	defer w.use(nil)
	select {
	case <-ctx.Done():
		return
	case <-known:
	}
	for {
		w.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

func (w *Watch) use(adm *kadm.Client) {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.adm = adm
}

// Look looks now. Of what it cannot read the watch keeps for a while what it knows.
func (w *Watch) Look(ctx context.Context) {
	w.turn.Lock()
	defer w.turn.Unlock()
	topics := slices.Compact(slices.Sorted(slices.Values(w.topics())))
	if len(topics) == 0 || w.adm == nil {
		return
	}
	groups, err := w.adm.ListGroups(ctx)
	if err != nil {
		err = fmt.Errorf("list groups: %w", err)
	}
	found, readErr := guards.Read(ctx, w.adm, groups.Groups(), topics)
	if ctx.Err() != nil {
		return
	}
	first, more := undenied(errors.Join(err, readErr))
	w.take(found, first == nil, time.Now())
	if first != nil && !w.logged {
		w.log.Warn("siding: not all guards are known that hold records back; the server tries again", "error", first, "further", more)
	}
	w.logged = first != nil
}

// undenied returns the first of the errors that are about more than a missing permission, and how
// many others there are. What the user may not see is as if it were not there.
func undenied(err error) (first error, more int) {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if failure.IsDenial(err) {
			err = nil
		}
		return err, 0
	}
	n := 0
	for _, err := range all.Unwrap() {
		one, further := undenied(err)
		if one != nil {
			first = cmp.Or(first, one)
			n += 1 + further
		}
	}
	return first, max(n-1, 0)
}

// take takes over what a look found. The others count no more if it read all, or were seen too long
// ago.
func (w *Watch) take(found []guards.Guard, whole bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := map[key]seen{}
	for k, s := range w.seen {
		if !whole && now.Sub(s.at) < keeps {
			next[k] = s
		}
	}
	for _, g := range found {
		next[key{g.Topic, g.Group}] = seen{shown(g), now}
	}
	w.seen, w.of = next, map[string][]api.Guard{}
	for k, s := range next {
		w.of[k.topic] = append(w.of[k.topic], s.Guard)
	}
	for _, all := range w.of {
		slices.SortFunc(all, worst)
	}
}

// Of returns the guards of a topic that are not closed: those that hold it first, then those behind
// which most records wait. Do not change the result.
func (w *Watch) Of(topic string) []api.Guard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[topic]
}

// Describe says in words that a group holds a topic.
func Describe(g *api.Guard, topic string) string {
	if g.State == Held {
		return fmt.Sprintf("group %s holds records of %s back", g.Group, topic)
	}
	return fmt.Sprintf("group %s runs records of %s in a strain", g.Group, topic)
}

func shown(g guards.Guard) api.Guard {
	is := api.Guard{Group: g.Group, State: Strained, Since: g.Since.UTC(), Class: g.Class, Partitions: g.Partitions, Of: g.Of}
	if g.Held {
		is.State = Held
	}
	if g.Waiting >= 0 {
		is.Waiting = &g.Waiting
	}
	return is
}

func worst(a, b api.Guard) int {
	waiting := func(g *api.Guard) int64 {
		if g.Waiting == nil {
			return 0
		}
		return *g.Waiting
	}
	return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(waiting(&b), waiting(&a)), cmp.Compare(a.Group, b.Group))
}
