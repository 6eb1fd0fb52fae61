package held

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/pulse"
)

const (
	// every is the wait after a look. A look lists the groups, fetches their commits, describes
	// those that matter, and asks for the ends of the topics that these read.
	every = 30 * time.Second
	// keeps is how long a guard counts that cannot be read again: a group gets another coordinator
	// sooner.
	keeps = time.Minute
)

// Watch looks again and again which groups hold topics. It is safe for concurrent use.
type Watch struct {
	log    *slog.Logger
	topics func() []string
	naming retrytopics.Naming

	turn   sync.Mutex // held for a look
	client *kgo.Client
	opts   []kgo.Opt
	logged bool // that not all could be read

	mu     sync.Mutex
	seen   map[key]seen
	of     map[string]*source // of seen, by topic
	hidden int                // groups that may not be described
	known  time.Time          // when the last look was
	whole  bool               // it read all that the user may see
}

type key struct{ topic, group string }

// seen is a group on a topic as a look saw it last.
type seen struct {
	api.Consumer
	standstills []Standstill
	at          time.Time
}

// New returns a watch of topics, which are asked for at each look.
func New(topics func() []string, naming retrytopics.Naming, log *slog.Logger) *Watch {
	return &Watch{topics: topics, naming: naming, log: log}
}

// Run looks until ctx ends, from when the topics are known. It has a client of its own: brokers
// answer the requests of a connection one after the other, and a coordinator may be slow.
func (w *Watch) Run(ctx context.Context, known <-chan struct{}, opts ...kgo.Opt) {
	cl, err := client.New(slices.Concat(opts, []kgo.Opt{kgo.RequestTimeoutOverhead(pulse.Patience), kgo.RetryTimeout(pulse.Patience)})...)
	if err != nil {
		w.log.Error("siding: it is not known which groups hold records back", "error", err)
		return
	}
	defer cl.Close()
	w.use(cl, opts)
	defer w.use(nil, nil)
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

func (w *Watch) use(cl *kgo.Client, opts []kgo.Opt) {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.client, w.opts = cl, opts
}

// Look looks now. Of what it cannot read the watch keeps for a while what it knows.
func (w *Watch) Look(ctx context.Context) {
	w.turn.Lock()
	defer w.turn.Unlock()
	topics := slices.Compact(slices.Sorted(slices.Values(w.topics())))
	if len(topics) == 0 || w.client == nil {
		return
	}
	found, err := consumers.Look(ctx, w.client, consumers.Ask{Topics: topics, Naming: w.naming})
	if dueErr := found.FindDue(ctx, w.opts...); dueErr != nil {
		err = errors.Join(err, dueErr)
	}
	if ctx.Err() != nil {
		return
	}
	first, more := undenied(err)
	w.take(&found, first == nil, time.Now())
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
func (w *Watch) take(found *consumers.Seen, whole bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := map[key]seen{}
	for k, s := range w.seen {
		if !whole && now.Sub(s.at) < keeps {
			next[k] = s
		}
	}
	for i := range found.Groups {
		g := &found.Groups[i]
		for j := range g.Uses {
			u := &g.Uses[j]
			k, is := key{u.Topic, g.Name}, shown(g, u)
			next[k] = seen{is, standstills(&is, w.seen[k].standstills, now), now}
		}
	}
	w.seen, w.of, w.hidden, w.known, w.whole = next, map[string]*source{}, len(found.Hidden), now, whole
	for k, s := range next {
		of := w.of[k.topic]
		if of == nil {
			of = &source{}
			w.of[k.topic] = of
		}
		of.add(s.Consumer, s.standstills)
	}
	for _, of := range w.of {
		of.sort()
	}
}

// Of returns the guards of a topic that are not closed: those that hold it first, then those behind
// which most records wait. Do not change the result.
func (w *Watch) Of(topic string) []api.Guard { return w.source(topic).guards }

// Stalled returns the groups of a topic that need somebody, and whose guard is closed: those behind
// which most records wait. Do not change the result.
func (w *Watch) Stalled(topic string) []api.Stalled { return w.source(topic).stalled }

// Standstills returns why records of a topic do not run, by group. It reports whether the last look
// could read all of them: else further ones may go on. Do not change the result.
func (w *Watch) Standstills(topic string) (all []Standstill, whole bool) {
	of := w.source(topic)
	w.mu.Lock()
	defer w.mu.Unlock()
	return of.standstills, w.whole
}

// Consumers returns the groups of a topic, those that need somebody first. Do not change the
// result.
func (w *Watch) Consumers(topic string) api.Consumers {
	of := w.source(topic)
	w.mu.Lock()
	defer w.mu.Unlock()
	all := api.Consumers{Source: topic, Hidden: w.hidden, Groups: of.groups}
	if !w.known.IsZero() {
		known := w.known.UTC()
		all.Known = &known
	}
	return all
}

// Version returns a number that is another when something about a topic changes.
func (w *Watch) Version(topic string) uint64 { return w.source(topic).version }

func (w *Watch) source(topic string) *source {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := w.of[topic]; of != nil {
		return of
	}
	return &source{}
}
