package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// fate is what a record does.
type fate uint8

const (
	passes       fate = iota
	takesLong         // within its timeout
	failsOften        // retryably, times times
	failsForGood      // terminally
	kills             // at its first attempt
	killsInPlace      // when it is repeated in place
	killsLater        // as a retry
	killsDecoder
	hangs // past its timeout, and passes then
	hangsAndFails
	hangsAndKills
)

var fates = [...]string{"passes", "takes long", "fails often", "fails for good", "kills", "kills in place", "kills later", "kills its decoder", "hangs", "hangs and fails", "hangs and kills"}

func (f fate) kills() bool {
	return f == kills || f == killsInPlace || f == killsLater || f == killsDecoder || f == hangsAndKills
}

func (f fate) hangs() bool { return f == hangs || f == hangsAndFails || f == hangsAndKills }

// script is a record's. The history's lock guards what changes.
type script struct {
	id        int
	topic     string
	partition int32
	key       string
	fate      fate
	times     int
	takes     time.Duration

	produced time.Time
	tried    bool // a call of its handler has returned
	handled  int
	letters  []headers.Reason
	deaths   map[string]int // that it caused, by the position of the copy that was read
	excused  bool
	slowly   int // of the history when it began to wait; -1 if it did not
}

func (s *script) String() string {
	return fmt.Sprintf("record %d of %s/%d, key %q, which %s (times %d, takes %v): handled %d times, deaths %v, letters %q",
		s.id, s.topic, s.partition, s.key, fates[s.fate], s.times, s.takes, s.handled, s.deaths, s.letters)
}

func (s *script) settled() bool {
	if s.fate.kills() || s.fate == failsForGood {
		return len(s.letters) > 0
	}
	return s.handled > 0 || len(s.letters) > 0
}

// joinsWithin is how long a process waits for the answer to a join, beyond the rebalance timeout.
// Each repeated join has the embedded broker wait for others from the beginning: as long as three
// members repeat theirs every 70 s, it never stops waiting for the 60 s of the rebalance timeout.
const joinsWithin = 5 * time.Minute

// mortalProcess is a process of a history, which may die.
type mortalProcess struct {
	h       *history
	n       int
	c       *consumertest.Consumer
	begun   chan struct{} // closed as c is there: its handler may run, and die, before
	stopped chan struct{}
	once    sync.Once
	dead    atomic.Bool
	cut     atomic.Bool

	mu    sync.Mutex
	conns []*mortalConn
	runs  map[*running]bool
	seen  map[[3]any]*script // by where it was read
	tries map[[2]int]int     // calls, by record and attempt
}

type running struct {
	s        *script
	physical headers.Position
	group    string
	began    time.Time
}

// mortalConn is a connection of a process. Once that is dead or cut off, the broker's answers are
// still taken, and thrown away. Otherwise the embedded broker may never expel a member whose
// connection ends while it waits to join: its session begins with the answer.
type mortalConn struct {
	net.Conn
	answers net.Conn // the end that the process reads
	p       *mortalProcess
}

func (p *mortalProcess) connect(conn net.Conn) *mortalConn {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		defer conn.Close()
		for buf := make([]byte, 1<<16); ; {
			n, err := conn.Read(buf)
			_, _ = far.Write(buf[:n]) // the process may read no more
			if err != nil {
				return
			}
		}
	}()
	return &mortalConn{conn, near, p}
}

func (c *mortalConn) Read(b []byte) (int, error) { return c.answers.Read(b) }

func (c *mortalConn) Write(b []byte) (int, error) {
	if c.p.silent() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *mortalConn) Close() error {
	_ = c.answers.Close()
	if c.p.silent() {
		return nil
	}
	return c.Conn.Close()
}

func (c *mortalConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *mortalConn) SetReadDeadline(t time.Time) error { return c.answers.SetReadDeadline(t) }

// silent reports whether the process reaches no broker.
func (p *mortalProcess) silent() bool { return p.dead.Load() || p.cut.Load() }

// startMortal starts a process of a history.
func startMortal(h *history, n int) *mortalProcess {
	p := &mortalProcess{h: h, n: n, begun: make(chan struct{}), stopped: make(chan struct{}), runs: map[*running]bool{}, seen: map[[3]any]*script{}, tries: map[[2]int]int{}}
	cfg := h.cfg
	cfg.Kafka = append(slices.Clone(cfg.Kafka), kgo.ClientID(fmt.Sprint("process-", n)), kgo.RequestTimeoutOverhead(joinsWithin), kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if p.silent() {
			time.Sleep(time.Second)
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		conn, err := h.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c := p.connect(conn)
		p.conns = append(p.conns, c)
		return c, nil
	}))
	if cfg.Handler = p.handle; h.decoder {
		cfg.Handler = consumer.Decode(func(ctx context.Context, r *kgo.Record) (int, error) {
			id, err := strconv.Atoi(string(r.Value))
			h.mu.Lock()
			s := h.all[id]
			h.mu.Unlock()
			if s.fate == killsDecoder && !p.dead.Load() {
				p.die(s, consumer.DeliveryOf(ctx, r).Physical.String())
			}
			if p.dead.Load() {
				<-ctx.Done()
			}
			return id, err
		}, func(ctx context.Context, r *kgo.Record, _ int) error { return p.handle(ctx, r) })
	}
	p.c = h.k.Begin(cfg)
	close(p.begun)
	return p
}

// severs closes the connections.
func (p *mortalProcess) severs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// die ends the process, by a record or by accident (nil).
func (p *mortalProcess) die(s *script, at string) {
	h := p.h
	if p.dead.Swap(true) {
		return
	}
	h.mu.Lock()
	h.quiet = time.Now()
	if s != nil {
		s.deaths[at]++
		h.logf("process %d dies by %v; %s", p.n, s, h.commitsNow(s.topic))
		if h.refusals { // what has run alone may still be named
			p.excuse()
		}
	} else {
		h.logf("process %d dies by accident", p.n)
		p.excuse()
	}
	h.mu.Unlock()
	go p.severs()
	go p.stop()
}

// stop ends the consumer, and waits.
func (p *mortalProcess) stop() {
	<-p.begun
	_ = p.c.Err()
	p.once.Do(func() { close(p.stopped) })
}

var alone = regexp.MustCompile(` x=(\d+)`)

// excuse notes which records run, and are named alone: they may be taken for ones that kill.
func (p *mortalProcess) excuse() {
	g := p.h.k.Cluster.GroupInfo("billing")
	if g == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for topic, of := range g.Commits {
		for partition, c := range of {
			m := alone.FindStringSubmatch(c.Metadata)
			if m == nil {
				continue
			}
			n, _ := strconv.ParseInt(m[1], 10, 64)
			s := p.seen[[3]any{topic, partition, c.Offset + n}]
			if s == nil {
				continue
			}
			runs := false
			for r := range p.runs {
				runs = runs || r.s == s
			}
			// while commits are refused, none says that it has run
			if runs || p.h.refusals {
				s.excused = true
				p.h.logf("  record %d is named alone", s.id)
			}
		}
	}
}

func (p *mortalProcess) handle(ctx context.Context, r *kgo.Record) error {
	h := p.h
	if p.dead.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	id, _ := strconv.Atoi(string(r.Value))
	d := consumer.DeliveryOf(ctx, r)
	h.mu.Lock()
	s := h.all[id]
	h.calls++
	run := &running{s: s, physical: d.Physical, began: time.Now()}
	switch {
	case d.Tier > 0 || h.cfg.Order == consumer.OrderNone:
	case h.cfg.Order == consumer.OrderPartition:
		run.group = fmt.Sprint(s.topic, s.partition)
	default:
		run.group = fmt.Sprint(s.topic, s.partition, s.key)
	}
	p.mu.Lock()
	p.tries[[2]int{id, d.Attempt}]++
	tries := p.tries[[2]int{id, d.Attempt}]
	if run.group != "" {
		for other := range p.runs {
			if other.group == run.group && h.members == 1 && !h.accidents {
				h.errorf("%v starts beside %v, which began %v ago", s, other.s, time.Since(other.began))
			}
		}
		for _, lower := range h.plan[fmt.Sprint(s.topic, s.partition)] {
			if lower == s {
				break
			}
			if !lower.tried && !lower.fate.kills() && !lower.fate.hangs() && !lower.excused && (h.cfg.Order == consumer.OrderPartition || lower.key == s.key) {
				h.errorf("%v starts before %v", s, lower)
			}
		}
	}
	p.runs[run] = true
	p.seen[[3]any{d.Physical.Topic, d.Physical.Partition, d.Physical.Offset}] = s
	p.mu.Unlock()
	if s.fate == takesLong || s.fate.hangs() && d.Attempt == 1 {
		h.slowly++
	}
	h.mu.Unlock()

	err := p.act(ctx, s, d, tries)
	if p.dead.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p.mu.Lock()
	delete(p.runs, run)
	p.mu.Unlock()
	if s.tried = true; err == nil {
		s.handled++
	}
	return err
}

// act does what the script says.
func (p *mortalProcess) act(ctx context.Context, s *script, d consumer.Delivery, tries int) error {
	attempt, at := d.Attempt, d.Physical.String()
	retryable := classify.Retryable(errBusy)
	switch s.fate {
	case passes:
		time.Sleep(s.takes)
	case takesLong:
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	case failsOften:
		if attempt <= s.times {
			return retryable
		}
	case failsForGood:
		return errors.New("no such SKU")
	case kills:
		p.die(s, at)
	case killsInPlace:
		if tries%2 == 1 {
			return retryable
		}
		p.die(s, at)
	case killsLater:
		if attempt == 1 {
			return retryable
		}
		p.die(s, at)
	case hangs, hangsAndFails, hangsAndKills:
		if attempt > 1 && s.fate != hangsAndKills {
			return nil
		}
		time.Sleep(s.takes)
		if s.fate == hangsAndFails {
			return retryable
		}
		if s.fate == hangsAndKills && !p.dead.Load() {
			p.die(s, at)
		}
	}
	return nil
}
