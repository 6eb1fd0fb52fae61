package consumer

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Hook is told of what happens inside a consumer. It is a value with one or more of the one-method interfaces below; they are
// found by assertion, so that a new one breaks nobody. A value that has none of them is a configuration error.
// A declaration such as var _ consumer.HookParked = myHook{} has the compiler check a method's signature.
//
// Hooks are called in their order in Config.Hooks. Calls of one method may come from several goroutines at a time, where it
// does not say otherwise. No lock of siding's is held, so a hook may call the consumer's methods. A panic is logged and is
// the end of that call, not of the consumer; runtime.Goexit must not be called.
//
// Records and Metas are shared with the consumer and are to be read only.
type Hook any

// HookDeadLettered is called once for each copy that was written to a dead-letter topic, broken records of retry topics
// included: after all in-sync replicas have it, and before the offset of the record that it was made from is committed. So
// no dead letter is missed; after a crash or a lost partition in between the record fails and is told of again.
//
// It runs on the goroutine that takes the brokers' acknowledgements, and while it runs no copy of this consumer is finished;
// copies that are sent alone, for their size, have a goroutine of their own. It must not block: what takes time (a page, a row
// in a database) belongs elsewhere.
type HookDeadLettered interface {
	OnDeadLettered(Routed)
}

// HookParked is called once for each copy that was written to a retry topic; when, where and how often are as with
// [HookDeadLettered]. A record that waits for longer than half of its tier's retention is parked more than once for one attempt.
type HookParked interface {
	OnParked(Routed)
}

// HookDiscarded is called for each record that is dropped, by the handler's word or by a disposition, before its offset is
// committed. It runs on the goroutine that ran the handler, and holds up that partition's next record; for one that is too large
// for its dead-letter topic (Policy.OnOversize) it runs where [HookDeadLettered] does.
type HookDiscarded interface {
	OnDiscarded(Routed)
}

// HookLaneState is called when the state of a lane that [Consumer.Health] reports is another than before. States are looked
// at twice a second: one that passes sooner may be missed, the last one of a lane is not. It runs on a goroutine of its own,
// one call at a time, and Run returns after its last call. It may take its time; the looks wait for it.
type HookLaneState interface {
	OnLaneState(LaneChange)
}

// Routed is a record that failed, and what became of it.
type Routed struct {
	// Record is the record as it was first read: coordinates, timestamp, key, value and the user's headers. With reason
	// malformed it has the coordinates on the retry topic, since what its headers say of its origin is not to be believed.
	// The value is nil where Meta.ValueOmitted says that the copy is without it.
	Record *kgo.Record
	// Meta is what the headers of the copy say: attempts, class, message (as Config.ErrorText let it through), times, and in
	// a retry topic when it is due. Meta.Reason says why the record is not tried again; empty for one that is parked.
	Meta headers.Meta
	// Tier is the delay of the retry topic that holds the copy; zero where there is none.
	Tier time.Duration
	// At is where the copy stands; zero for a record that was discarded.
	At headers.Position
}

// LaneChange is a lane's way from one state to another.
type LaneChange struct {
	Topic     string
	Partition int32
	// From is empty for a lane that is new here, To for one that was given up or lost.
	From, To State
	// Since is when the lane came into its state, or was first seen to be in it; Why says what it waits for.
	Since time.Time
	Why   string
}

// hooks are the hooks of a consumer by what they want to know.
// See DESIGN.md, "Hooks and telemetry".
type hooks struct {
	deadLettered []HookDeadLettered
	parked       []HookParked
	discarded    []HookDiscarded
	laneState    []HookLaneState
}

func newHooks(all []Hook) (h hooks) {
	for _, hook := range all {
		h.deadLettered = collect(h.deadLettered, hook)
		h.parked = collect(h.parked, hook)
		h.discarded = collect(h.discarded, hook)
		h.laneState = collect(h.laneState, hook)
	}
	return h
}

func collect[H any](all []H, hook Hook) []H {
	if h, ok := hook.(H); ok {
		all = append(all, h)
	}
	return all
}

// call runs a hook, which is foreign code.
func (c *Consumer) call(name string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			c.throttle.once("hook "+name, logEvery, func() {
				c.log.Error("siding: a hook panicked", "hook", name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			})
		}
	}()
	f()
}

// copied tells the hooks of a copy that is safe. What they are told is what is in the headers that were written; so nothing
// has to be kept for them while the copy is on its way.
func (l *lane) copied(fw *forward, r *kgo.Record) {
	h := &l.c.hooks
	if len(h.deadLettered)+len(h.parked) == 0 || fw.note {
		return // nearly always, and this path is hot where everything fails
	}
	dead := r.Topic == l.siblings.DLQ
	if dead && len(h.deadLettered) == 0 || !dead && len(h.parked) == 0 {
		return
	}
	e := l.routed(fw, fw.headers(), r.Value)
	e.At = headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
	if dead {
		for _, hook := range h.deadLettered {
			l.c.call("OnDeadLettered", func() { hook.OnDeadLettered(e) })
		}
		return
	}
	e.Tier = l.delayOf(fw, r.Topic)
	for _, hook := range h.parked {
		l.c.call("OnParked", func() { hook.OnParked(e) })
	}
}

// routed is what the hooks are told of a copy with these headers.
func (l *lane) routed(fw *forward, written []kgo.RecordHeader, value []byte) (e Routed) {
	e.Meta, _ = headers.Parse(written) // broken ones are what the record was dead-lettered for
	origin := e.Meta.Original
	if e.Meta.Reason == headers.ReasonMalformed {
		origin = headers.Position{Topic: fw.feed.topic, Partition: l.partition, Offset: fw.offset}
	}
	e.Record = recordAt(origin, fw.rec.Key, value, headers.Strip(written))
	return e
}

// delayOf is the delay of the retry topic that a copy went to. One that is parked again stays where it was.
func (l *lane) delayOf(fw *forward, topic string) time.Duration {
	for _, t := range l.siblings.Tiers {
		if t.Topic == topic {
			return t.Delay
		}
	}
	return fw.feed.delay
}

// countDiscarded tells the hooks of a record that is discarded.
func (l *lane) countDiscarded(seen *copySource, m headers.Meta, reason headers.Reason) {
	if len(l.c.hooks.discarded) == 0 {
		return
	}
	m.Reason = reason
	l.reportDiscarded(Routed{Record: recordAt(m.Original, seen.key, seen.value, seen.headers), Meta: m})
}

func (l *lane) reportDiscarded(e Routed) {
	for _, hook := range l.c.hooks.discarded {
		l.c.call("OnDiscarded", func() { hook.OnDiscarded(e) })
	}
}

// recordAt is a record as it was read at a position.
func recordAt(p headers.Position, key, value []byte, h []kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{
		Key: key, Value: value, Headers: h, Timestamp: p.Timestamp, Topic: p.Topic, Partition: p.Partition, Offset: p.Offset,
		LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1,
	}
}
