package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/member"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// crew are the members of all services. A fault that does something to a member has it as its
// victim meanwhile, and no other fault has.
type crew struct {
	cfg      Config
	services []trace.Service
	mark     string          // in records
	seeds    func() []string // the brokers' addresses
	logf     func(format string, args ...any)

	closing atomic.Bool
	mu      sync.Mutex
	died    []*crewMember           // by themselves
	idle    []*crewMember           // alive, and no fault's victim
	tiers   map[int][]time.Duration // of services whose configuration has changed
	begun   int                     // starts of members, also those that failed
	all     []*crewMember
}

// start starts a member of a service.
func (c *crew) start(service int) (*crewMember, error) {
	c.mu.Lock()
	number := c.begun
	c.begun++
	name := fmt.Sprintf("s%d-m%02d", service, number)
	m := &crewMember{Member: trace.Member{Service: service, Job: trace.Job{
		Name: name, Service: c.services[service], Seeds: c.seeds(), Dir: c.cfg.Dir, Defect: c.cfg.defect,
		Mark: c.mark, Traced: number%2 == 0,
	}}}
	if c.cfg.Broker == BrokerKafka {
		m.Job.User = brokers.MemberUser
	}
	// what was evicted is read again past the hook that skews
	if m.Job.Service.MaxParkedBytes == 0 {
		m.Job.Skew = skews[number%len(skews)]
	}
	if tiers := c.tiers[service]; tiers != nil {
		m.Job.Service.Policy.Tiers = tiers
	}
	c.mu.Unlock()
	m.Began = time.Now().UnixNano()
	var err error
	if m.proc, err = child.Start(member.Role, m.Job, m.Job.Log()); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.idle = append(c.all, m), append(c.idle, m)
	go c.supervise(m)
	return m, nil
}

// skews are by how much the clocks of members' hosts are fast, in the order of their starts.
var skews = []time.Duration{0, 300 * time.Millisecond, 0, -300 * time.Millisecond, 0}

// supervise replaces a member that ends by itself, as whatever runs a service does.
func (c *crew) supervise(m *crewMember) {
	<-m.proc.Exited
	if m.asked.Load() || c.closing.Load() {
		return
	}
	c.logf("%s ended by itself: %v; see %s", m.Job.Name, m.proc.Err, m.Job.Log())
	c.mu.Lock()
	c.died = append(c.died, m)
	m.Killed, m.Ended = true, time.Now().UnixNano()
	idle := len(c.idle)
	c.idle = slices.DeleteFunc(c.idle, func(other *crewMember) bool { return other == m })
	replaced := len(c.idle) < idle // its fault replaces a victim
	c.mu.Unlock()
	if replaced {
		<-time.After(time.Second)
		c.replace(m)
	}
}

// victim takes a member that is alive, not spared, and that no other fault has. It waits for one.
func (c *crew) victim(rnd *rand.Rand) *crewMember {
	for {
		c.mu.Lock()
		var able []*crewMember
		for _, m := range c.idle {
			if !m.spared {
				able = append(able, m)
			}
		}
		if len(able) > 0 {
			m := able[rnd.IntN(len(able))]
			c.idle = slices.DeleteFunc(c.idle, func(other *crewMember) bool { return other == m })
			c.mu.Unlock()
			return m
		}
		c.mu.Unlock()
		<-time.After(100 * time.Millisecond)
	}
}

// release makes a victim that lives on available again.
func (c *crew) release(m *crewMember) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, m)
}

// replace starts a member in the place of one that ended.
func (c *crew) replace(m *crewMember) {
	if _, err := c.start(m.Service); err != nil {
		c.logf("a member cannot be started: %v", err)
	}
}

// join starts a further member, as its caller's victim.
func (c *crew) join(service int) *crewMember {
	m, err := c.start(service)
	if err != nil {
		c.logf("a member cannot be started: %v", err)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = slices.DeleteFunc(c.idle, func(other *crewMember) bool { return other == m })
	return m
}

// take takes all members of a service that are neither spared nor the victim of a fault.
func (c *crew) take(service int) (taken []*crewMember) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = slices.DeleteFunc(c.idle, func(m *crewMember) bool {
		if m.Service != service || m.spared {
			return false
		}
		taken = append(taken, m)
		return true
	})
	return taken
}

// configure gives the next members of a service other tiers.
func (c *crew) configure(service int, tiers []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tiers[service] = tiers
}

// list returns a list of the crew as it is now.
func (c *crew) list(of *[]*crewMember) []*crewMember {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(*of)
}

// close kills those that are left.
func (c *crew) close() {
	c.closing.Store(true)
	for _, m := range c.list(&c.all) {
		if m.proc.Alive() {
			m.proc.Kill()
		}
	}
}

// crewMember is a process that consumes.
type crewMember struct {
	trace.Member // written by the goroutine that has it as victim

	proc   *child.Process
	spared bool        // nothing is done to it, so that it lives long
	asked  atomic.Bool // to end
}

// facts returns what the checker needs, once the run is over.
func (m *crewMember) facts() *trace.Member {
	m.Asked = m.asked.Load()
	if !m.proc.Alive() {
		m.Err = m.proc.Err
	}
	return &m.Member
}

// end records when the member ended, unless it has done so by itself.
func (m *crewMember) end() { m.Ended = cmp.Or(m.Ended, time.Now().UnixNano()) }

func (m *crewMember) kill() {
	m.asked.Store(true)
	m.Killed = true
	m.proc.Kill()
	m.end()
}

// awaitJournal waits until the member has its journal: from then on it does not die of SIGTERM.
func (m *crewMember) awaitJournal() {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err := os.Stat(m.Job.Journal()); err == nil {
			return
		}
		select {
		case <-m.proc.Exited:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// term ends the member in order; one that does not end in time is killed.
func (m *crewMember) term() {
	m.asked.Store(true)
	m.Termed = time.Now().UnixNano()
	m.awaitJournal()
	_ = m.proc.Signal(syscall.SIGTERM)
	select {
	case <-m.proc.Exited:
	case <-time.After(m.Job.Service.Policy.DrainTimeout + 5*time.Minute):
		m.Killed = true
		m.proc.Kill()
	}
	m.end()
}

// suspend stops the member, as a long garbage collection or a suspended machine does.
func (m *crewMember) suspend(wait func()) {
	from := time.Now().UnixNano()
	_ = m.proc.Signal(syscall.SIGSTOP)
	wait()
	_ = m.proc.Signal(syscall.SIGCONT)
	m.Suspended = append(m.Suspended, [2]int64{from, time.Now().UnixNano()})
}
