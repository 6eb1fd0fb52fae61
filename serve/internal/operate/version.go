package operate

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

// Version returns a number that is another when a topic or its problem changes. It costs next to
// nothing, and so do the other versions.
func Version(d *Desk, topic string) uint64 {
	cluster := d.cfg.Cluster
	t := cluster.Topic(topic)
	if t == nil {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, cluster.Trouble(t, t.Index.Progress().Problem), cluster.Guards.Version(t.Source))
	return t.Index.Changes() + t.LedgerEnd() + h.Sum64()
}

// LetterVersion returns a number that is another when the state of a letter changes.
func LetterVersion(d *Desk, topic string, partition int32, offset int64) uint64 {
	t := d.cfg.Cluster.Topic(topic)
	if t == nil {
		return 0
	}
	row, ok := t.Index.At(partition, offset)
	if !ok {
		return 1
	}
	version := uint64(2)
	for _, c := range []byte(row.State) {
		version = version*31 + uint64(c)
	}
	return version
}

// RunVersion returns a number that is another when a run of a topic has other numbers.
func RunVersion(d *Desk, topic string) uint64 {
	t := d.cfg.Cluster.Topic(topic)
	if t == nil {
		return 0
	}
	h := fnv.New64a()
	add := func(o *redrive.Outcome) {
		c := &o.Counts
		fmt.Fprint(h, o.ID, o.State, o.Heartbeat.UnixNano(), o.Stopped.UnixNano(), c.Sent, c.Succeeded, c.Failed, c.Retrying, c.Pending, t.Silent(o))
	}
	for _, l := range d.Runner.OnTopic(topic) {
		o, _, _ := l.Get()
		add(&o)
	}
	runs := t.Known()
	for i := range runs {
		if runs[i].Counts.Pending > 0 || !runs[i].State.Finished() {
			add(&runs[i])
		}
	}
	fmt.Fprint(h, len(runs))
	return h.Sum64()
}

// SilentSince returns since when no broker has answered, if that is too long ago; zero otherwise.
func SilentSince(d *Desk) time.Time { return d.cfg.Cluster.Pulse.SilentSince() }
