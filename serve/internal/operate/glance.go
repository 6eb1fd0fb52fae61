package operate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Bounds of the work for the glances of one list.
const (
	// glanceTime is how long a list waits for what it does not know yet.
	glanceTime = time.Second
	// glanceReads bounds the reads, one for each run of letters that are at most glanceGap apart.
	glanceReads = 8
	glanceGap   = 50
	// glanceRest is how long lists of a topic do without, after its letters could not be read.
	glanceRest = 10 * time.Second
	// The longest message and key of a list, in bytes.
	glanceMessage = 256
	glanceKey     = 64
)

// errGlances says that some letters of a list were not read.
var errGlances = errors.New("the brokers did not answer in time")

// Glances returns what a list shows of letters beside what an index knows, without what is hidden.
// A letter that was read before is not read again. What the brokers do not answer within a second
// is missing, and the error says why.
func Glances(ctx context.Context, d *Desk, who *access.Identity, topic string, letters []api.Letter) (map[selection.Place]Glance, error) {
	t, err := TopicFor(ctx, d, who, topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	known := map[selection.Place]Glance{}
	written := map[selection.Place]time.Time{}
	var missing []selection.Place
	for i := range letters {
		at := selection.Place{Partition: letters[i].Partition, Offset: letters[i].Offset}
		if g, ok := d.glances.get(glanceAt{topic, at, letters[i].EnteredAt.UnixMilli()}); ok {
			known[at] = g
			continue
		}
		missing, written[at] = append(missing, at), letters[i].EnteredAt
	}
	if len(missing) > 0 {
		err = readGlances(ctx, d, t, missing, func(at selection.Place, g Glance) {
			d.glances.put(glanceAt{topic, at, written[at].UnixMilli()}, g)
			known[at] = g
		})
	}
	if who.On(topic) < access.Reader {
		for at, g := range known {
			g.Key = api.Bytes{}
			known[at] = g
		}
	}
	return known, err
}

// readGlances reads letters, those of the largest runs first.
func readGlances(ctx context.Context, d *Desk, t *watch.Topic, places []selection.Place, add func(selection.Place, Glance)) error {
	topic := t.DeadLetterTopic.Topic
	if !t.SilentSince(d.cfg.Cluster.Pulse).IsZero() || d.glances.rests(topic, time.Now()) {
		return errGlances
	}
	reading, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	for n, near := range nearOnes(places) {
		if n == glanceReads {
			return errors.New("they are too far apart in the topic: the next look reads more of them")
		}
		for l, err := range selection.ReadAt(reading, topic, near, d.cfg.Kafka...) {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case reading.Err() != nil:
				d.glances.rest(topic, time.Now().Add(glanceRest))
				return errGlances
			case err != nil:
				d.glances.rest(topic, time.Now().Add(glanceRest))
				return problemOn(ctx, d, t, err)
			}
			l, _, _ = d.cfg.View.Letter(reading, l)
			add(selection.Place{Partition: l.Record.Partition, Offset: l.Record.Offset}, glanceOf(l))
		}
	}
	return nil
}

// nearOnes splits places into runs of letters that are near each other, the longest first.
func nearOnes(places []selection.Place) (runs [][]selection.Place) {
	places = slices.SortedFunc(slices.Values(places), func(a, b selection.Place) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	for i, at := range places {
		if i > 0 && places[i-1].Partition == at.Partition && at.Offset-places[i-1].Offset <= glanceGap {
			runs[len(runs)-1] = append(runs[len(runs)-1], at)
			continue
		}
		runs = append(runs, []selection.Place{at})
	}
	slices.SortStableFunc(runs, func(a, b []selection.Place) int { return cmp.Compare(len(b), len(a)) })
	return runs
}

func glanceOf(l *dlq.Letter) Glance {
	message, _ := bytesOf([]byte(l.Meta.Message), glanceMessage)
	g := Glance{Attempts: l.Meta.Attempts, Host: l.Meta.Host}
	if message.Text != nil {
		g.Message, g.Cut = *message.Text, message.Cut
	}
	g.Key, _ = bytesOf(l.Record.Key, glanceKey)
	return g
}
