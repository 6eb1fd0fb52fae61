package chaos

import (
	"math/rand/v2"
	"syscall"
	"time"
)

// capability is what a run can do to its brokers.
type capability uint8

const (
	canProxy   capability = 1 << iota // a proxy stands before each broker
	canAnswer                         // the broker answers with errors, as ordered
	canEnd                            // nodes can be ended and started
	canRestart                        // all nodes can be ended at once, and started
)

// faultKind is a kind of fault that a run injects.
type faultKind struct {
	name  string
	needs capability
	// infra faults are those of brokers and networks: any member may lose its membership.
	infra bool
	// do injects the fault, waits, and heals it. It returns early if the run is being healed.
	do func(*execution, *rand.Rand)
}

// faultKinds are all faults.
var faultKinds = []faultKind{
	{name: "kill", do: func(e *execution, rnd *rand.Rand) {
		m := e.victim(rnd)
		m.kill()
		e.rest(rnd, 0, 2*time.Second)
		e.replace(m)
	}},
	{name: "term", do: func(e *execution, rnd *rand.Rand) {
		m := e.victim(rnd)
		m.term()
		e.rest(rnd, 0, 2*time.Second)
		e.replace(m)
	}},
	{name: "join", do: func(e *execution, rnd *rand.Rand) {
		m := e.join(rnd.IntN(len(e.plan.services)))
		e.rest(rnd, 5*time.Second, 15*time.Second)
		m.term()
	}},
	{name: "suspend", do: func(e *execution, rnd *rand.Rand) {
		m := e.victim(rnd)
		m.suspend(func() { e.rest(rnd, session+time.Second, session+5*time.Second) })
		e.release(m)
	}},
}

func kindNamed(name string) *faultKind {
	for i := range faultKinds {
		if faultKinds[i].name == name {
			return &faultKinds[i]
		}
	}
	return new(faultKind)
}

// member is a process that consumes.
type member struct {
	job     memberJob
	service int
	proc    *process

	// What happened to it, in nanoseconds. All are written by the goroutine that has it as victim.
	began     int64
	ended     int64 // 0: never
	killed    bool
	suspended [][2]int64
}

func (m *member) kill() {
	m.killed = true
	m.proc.kill()
	m.ended = time.Now().UnixNano()
}

// term ends the member in order; one that does not end in time is killed.
func (m *member) term() {
	_ = m.proc.signal(syscall.SIGTERM)
	select {
	case <-m.proc.exited:
	case <-time.After(m.job.Service.Policy.DrainTimeout + 30*time.Second):
		m.killed = true
		m.proc.kill()
	}
	m.ended = time.Now().UnixNano()
}

// suspend stops the member, as a long garbage collection or a suspended machine does.
func (m *member) suspend(wait func()) {
	from := time.Now().UnixNano()
	_ = m.proc.signal(syscall.SIGSTOP)
	wait()
	_ = m.proc.signal(syscall.SIGCONT)
	m.suspended = append(m.suspended, [2]int64{from, time.Now().UnixNano()})
}
