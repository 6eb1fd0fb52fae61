package consumer

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/headers"
)

// Hook is notified of events inside a consumer. A hook implements one or more of the one-method
// interfaces below, and is called for those only. They are found by type assertion. [New] refuses a
// value that implements none, and one whose method has the name of a hook's and another signature.
// A declaration such as var _ consumer.HookParked = myHook{} makes the compiler check a signature.
//
// Hooks are called in the order of Config.Hooks. Unless the interface says otherwise, several
// goroutines may call one method at a time. siding holds no lock meanwhile, so a hook may call the
// consumer's methods. A panic is logged, as a [classify.PanicError] through Config.ErrorText, and
// ends only that call. A hook must not call runtime.Goexit.
//
// Hooks share the Records and Metas with the consumer, and must not change them.
type Hook any

// HookDeadLettered is called once for each copy that was written to a dead-letter topic, also for
// broken records of retry topics. All in-sync replicas have the copy by then, and the offset of its
// original is not committed yet. So no dead letter is missed. After a crash or a lost partition in
// between, the record fails again and is reported again.
//
// It runs on the goroutine that handles the brokers' acknowledgements: until it returns, no copy of
// this consumer is finished. Copies that are sent alone for their size have a goroutine of their
// own. It must not block. Slow work (a page, a row in a database) belongs on another goroutine.
type HookDeadLettered interface {
	OnDeadLettered(Routed)
}

// HookParked is called once for each copy that was written to a retry topic, under the rules of
// [HookDeadLettered]. A record that waits for longer than half of its tier's retention is parked
// more than once for one attempt.
//
// Under [Config].HoldKeys it is called as well for each record that waits in its source: on the
// goroutine that ran the handler, and without a copy, so that Routed.At is zero.
type HookParked interface {
	OnParked(Routed)
}

// HookDiscarded is called for each record that a handler or a disposition discards, before its
// offset is committed. It runs on the goroutine that ran the handler, and holds up the next record
// of that partition. For a record that is too large for its dead-letter topic (Policy.OnOversize),
// it runs where [HookDeadLettered] does.
type HookDiscarded interface {
	OnDiscarded(Routed)
}

// HookLaneState is called when the state of a lane, as [Consumer.Health] reports it, has changed.
// States are polled twice a second. A shorter one may be missed, but never the last one of a lane.
// It runs on a goroutine of its own, one call at a time. It may take its time: the poll waits for
// it, and Run returns after its last call.
type HookLaneState interface {
	OnLaneState(LaneChange)
}

// HookBreaker is called when a topic has become strained, held or closed, see [Breaker], once for
// each change and in order. It runs on a goroutine of its own, one call at a time, as the lines of
// the log about it do. It may take its time: Run returns after its last call.
type HookBreaker interface {
	OnBreaker(BreakerChange)
}

// Routed is a failed record, and what happened to it.
type Routed struct {
	// Record is the record as it was first read: position, timestamp, key, value and the user's
	// headers. With reason malformed it has its position on the retry topic, because the headers
	// about its origin are not trustworthy. The value is nil if Meta.ValueOmitted says that the
	// copy lacks it.
	Record *kgo.Record
	// Meta holds what the copy's headers say: attempts, class, message (as Config.ErrorText
	// returned it), times, and the due time in a retry topic. Meta.Reason says why the record is
	// not tried again; it is empty for a parked record.
	Meta headers.Meta
	// Tier is the delay of the retry topic that holds the copy, or after which a held record runs
	// again; zero for a dead letter or a discarded record.
	Tier time.Duration
	// At is the position of the copy; zero for a discarded record, and a held one.
	At headers.Position
}

// LaneChange is a lane's change of state.
type LaneChange struct {
	Topic     string
	Partition int32
	// From is empty for a new lane, To for a lane that was revoked or lost.
	From, To State
	// Since is when the lane entered its state, or was first seen in it. Why says what it waits
	// for.
	Since time.Time
	Why   string
}

// BreakerChange is a change of state of a topic's [Breaker].
type BreakerChange struct {
	Topic string
	// From and To are "closed", "strained" or "held".
	From, To string
	At       time.Time
	// Since is when the topic was closed last, and Probes how many probes have ended since.
	Since  time.Time
	Probes int
	// Why says which runs led to the change.
	Why string
}

// hooks holds a consumer's hooks by interface.
// See DESIGN.md, "Hooks and telemetry".
type hooks struct {
	deadLettered []HookDeadLettered
	parked       []HookParked
	discarded    []HookDiscarded
	laneState    []HookLaneState
	breaker      []HookBreaker

	log      *slog.Logger
	throttle *logthrottle.Throttle
	shown    func(error) string // Config.ErrorText
}

func newHooks(all []Hook, log *slog.Logger, throttle *logthrottle.Throttle, shown func(error) string) hooks {
	h := hooks{log: log, throttle: throttle, shown: shown}
	for _, hook := range all {
		h.deadLettered = collect(h.deadLettered, hook)
		h.parked = collect(h.parked, hook)
		h.discarded = collect(h.discarded, hook)
		h.laneState = collect(h.laneState, hook)
		h.breaker = collect(h.breaker, hook)
	}
	return h
}

// hookKinds are the interfaces of hooks.
var hookKinds = []reflect.Type{
	reflect.TypeFor[HookDeadLettered](), reflect.TypeFor[HookParked](), reflect.TypeFor[HookDiscarded](), reflect.TypeFor[HookLaneState](),
	reflect.TypeFor[HookBreaker](),
}

// hookProblems says why a hook is never called, or why one of its methods is not.
func hookProblems(hook Hook) (all []string) {
	is := reflect.TypeOf(hook)
	if is == nil {
		return []string{"it is nil"}
	}
	called := false
	for _, kind := range hookKinds {
		want := kind.Method(0)
		switch has, ok := is.MethodByName(want.Name); {
		case is.Implements(kind):
			called = true
		case ok:
			all = append(all, fmt.Sprintf("%v.%s is never called: it is a %v, and %v wants a %v", is, want.Name, withoutReceiver(has.Type), kind, want.Type))
		case is.Kind() != reflect.Pointer && reflect.PointerTo(is).Implements(kind):
			all = append(all, fmt.Sprintf("%v.%s is never called, since its receiver is a pointer: pass a pointer", is, want.Name))
		}
	}
	if !called && len(all) == 0 {
		all = append(all, fmt.Sprintf("%v has no method of a hook: OnDeadLettered, OnParked, OnDiscarded, OnLaneState or OnBreaker", is))
	}
	return all
}

// withoutReceiver returns the type of a method that was found on a type, as it is declared.
func withoutReceiver(method reflect.Type) reflect.Type {
	in, out := []reflect.Type{}, []reflect.Type{}
	for i := 1; i < method.NumIn(); i++ {
		in = append(in, method.In(i))
	}
	for i := range method.NumOut() {
		out = append(out, method.Out(i))
	}
	return reflect.FuncOf(in, out, method.IsVariadic())
}

func collect[H any](all []H, hook Hook) []H {
	if h, ok := hook.(H); ok {
		all = append(all, h)
	}
	return all
}

// call runs a hook, and logs a panic of it. A hook sees the record, so its panic may quote it: its
// text is shown as that of a handler's panic is.
func (h *hooks) call(name string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			h.throttle.Once("hook "+name, logthrottle.Every, func() {
				err := &classify.PanicError{Value: v, Stack: stack}
				h.log.Error("siding: a hook panicked", "hook", name, "error", textOf(err, err.Error(), h.shown), "stack", string(stack))
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

func (h *hooks) reportBreaker(e BreakerChange) {
	for _, hook := range h.breaker {
		h.call("OnBreaker", func() { hook.OnBreaker(e) })
	}
}
