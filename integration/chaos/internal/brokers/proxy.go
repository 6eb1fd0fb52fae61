package brokers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A proxy stands in front of one broker, which announces the proxy's address instead of its own. So
// connections can be cut, delayed, frozen and refused. It is safe for concurrent use.
type Proxy struct {
	ln net.Listener

	mu      sync.Mutex
	changed *sync.Cond
	target  string
	conns   map[net.Conn]bool
	frozen  bool // connections stay open, and nothing passes
	down    bool // connections are refused
	Delay   time.Duration
	closed  bool
}

func newProxy() (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{ln: ln, conns: map[net.Conn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

func (p *Proxy) addr() string { return p.ln.Addr().String() }

// Set changes how the proxy behaves.
func (p *Proxy) Set(change func(*Proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
	p.changed.Broadcast()
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) close() {
	p.ln.Close()
	p.Set(func(p *Proxy) { p.closed = true })
	p.Cut()
}

func (p *Proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go p.serve(c)
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target, down := p.target, p.down
	p.mu.Unlock()
	if down {
		reset(client)
		return
	}
	broker, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		reset(client)
		return
	}
	defer broker.Close()
	p.Set(func(p *Proxy) { p.conns[client], p.conns[broker] = true, true })
	defer p.Set(func(p *Proxy) { delete(p.conns, client); delete(p.conns, broker) })
	var wg sync.WaitGroup
	wg.Go(func() { p.carry(broker, client) })
	p.carry(client, broker)
	wg.Wait()
}

// reset makes the end of a connection a reset. An orderly end before the first answer would look
// like a broker that wants TLS, not like one that is gone.
func reset(c net.Conn) {
	if c, ok := c.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
}

// chunk is what was read at a time.
type chunk struct {
	data []byte
	at   time.Time
}

// carry copies from one connection to another until one of them ends, and then ends both.
func (p *Proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	chunks := make(chan chunk, 256)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range chunks {
			if p.hold(c.at) != nil {
				continue
			}
			if _, err := to.Write(c.data); err != nil {
				from.Close() // the reader ends too
			}
		}
	}()
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{buf[:n], time.Now()}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	<-done
}

// hold waits as long as data that was read at a time has to wait. It fails when the proxy closes.
func (p *Proxy) hold(at time.Time) error {
	p.mu.Lock()
	for p.frozen && !p.closed {
		p.changed.Wait()
	}
	closed, delay := p.closed, p.Delay
	p.mu.Unlock()
	if closed {
		return io.ErrClosedPipe
	}
	if wait := time.Until(at.Add(delay)); delay > 0 && wait > 0 {
		<-time.After(wait)
	}
	return nil
}

// lowPorts has the ports that lowPort returned: brokers that start side by side share none.
var lowPorts sync.Map

// lowPort returns a free port below those that systems give to outgoing connections: a broker
// listens there later, again after each restart, and the port must not be taken meanwhile.
func lowPort() (port int, err error) {
	for range 100 {
		port = 20000 + rand.IntN(10000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			continue
		}
		l.Close()
		if _, taken := lowPorts.LoadOrStore(port, true); !taken {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port of 20000 to 29999 is free: %w", err)
}

// proxied are brokers behind proxies.
type proxied struct {
	proxies []*Proxy
}

func (p proxied) Proxy(node int) *Proxy { return p.proxies[node] }

func (p proxied) Seeds() (all []string) {
	for _, proxy := range p.proxies {
		all = append(all, proxy.addr())
	}
	return all
}

func (p proxied) Options(direct bool) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(p.Seeds()...)}
	if !direct {
		return opts
	}
	behind := map[string]string{}
	for _, proxy := range p.proxies {
		behind[proxy.addr()] = proxy.target
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return append(opts, kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		if addr := behind[host]; addr != "" {
			host = addr
		}
		return dialer.DialContext(ctx, network, host)
	}))
}

func (p proxied) close() {
	for _, proxy := range p.proxies {
		proxy.close()
	}
}
