package consumer

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/headers"
)

// Hook is told of what happens inside a consumer. It is a value with one or more of the one-method
// interfaces below; they are found by assertion, so that a new one breaks nobody. A value that has
// none of them is a configuration error. A declaration such as var _ consumer.HookParked = myHook{}
// has the compiler check a method's signature.
//
// Hooks are called in their order in Config.Hooks. Calls of one method may come from several
// goroutines at a time, where it does not say otherwise. No lock of siding's is held, so a hook may
// call the consumer's methods. A panic is logged and is the end of that call, not of the consumer;
// runtime.Goexit must not be called.
//
// Records and Metas are shared with the consumer and are to be read only.
type Hook any

// HookDeadLettered is called once for each copy that was written to a dead-letter topic, broken
// records of retry topics included: after all in-sync replicas have it, and before the offset of
// the record that it was made from is committed. So no dead letter is missed; after a crash or a
// lost partition in between the record fails and is told of again.
//
// It runs on the goroutine that takes the brokers' acknowledgements, and while it runs no copy of
// this consumer is finished; copies that are sent alone, for their size, have a goroutine of their
// own. It must not block: what takes time (a page, a row in a database) belongs elsewhere.
type HookDeadLettered interface {
	OnDeadLettered(Routed)
}

// HookParked is called once for each copy that was written to a retry topic; when, where and how
// often are as with [HookDeadLettered]. A record that waits for longer than half of its tier's
// retention is parked more than once for one attempt.
type HookParked interface {
	OnParked(Routed)
}

// HookDiscarded is called for each record that is dropped, by the handler's word or by a
// disposition, before its offset is committed. It runs on the goroutine that ran the handler, and
// holds up that partition's next record; for one that is too large for its dead-letter topic
// (Policy.OnOversize) it runs where [HookDeadLettered] does.
type HookDiscarded interface {
	OnDiscarded(Routed)
}

// HookLaneState is called when the state of a lane that [Consumer.Health] reports is another than
// before. States are looked at twice a second: one that passes sooner may be missed, the last one
// of a lane is not. It runs on a goroutine of its own, one call at a time, and Run returns after
// its last call. It may take its time; the looks wait for it.
type HookLaneState interface {
	OnLaneState(LaneChange)
}

// Routed is a record that failed, and what became of it.
type Routed struct {
	// Record is the record as it was first read: coordinates, timestamp, key, value and the user's
	// headers. With reason malformed it has the coordinates on the retry topic, since what its
	// headers say of its origin is not to be believed. The value is nil where Meta.ValueOmitted
	// says that the copy is without it.
	Record *kgo.Record
	// Meta is what the headers of the copy say: attempts, class, message (as Config.ErrorText let
	// it through), times, and in a retry topic when it is due. Meta.Reason says why the record is
	// not tried again; empty for one that is parked.
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
	// Since is when the lane came into its state, or was first seen to be in it; Why says what it
	// waits for.
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

	log      *slog.Logger
	throttle *logthrottle.Throttle
}

func newHooks(all []Hook, log *slog.Logger, throttle *logthrottle.Throttle) hooks {
	h := hooks{log: log, throttle: throttle}
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
func (h *hooks) call(name string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			h.throttle.Once("hook "+name, logthrottle.Every, func() {
				h.log.Error("siding: a hook panicked", "hook", name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			})
		}
	}()
	f()
}

func (h *hooks) reportLaneState(e LaneChange) {
	for _, hook := range h.laneState {
		h.call("OnLaneState", func() { hook.OnLaneState(e) })
	}
}
