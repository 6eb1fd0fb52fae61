package brokers

import (
	"io"
	"net"
	"testing"
	"time"
)

// A proxy that does not fail its connections injects nothing.
func TestProxy_FailsConnections(t *testing.T) {
	t.Parallel()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	p, err := newProxy()
	must(t, err)
	defer p.close()
	p.Set(func(p *Proxy) { p.target = echo.Addr().String() })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", p.addr())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	back := func(c net.Conn, within time.Duration) error {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	c := dial()
	if err := back(c, 10*time.Second); err != nil {
		t.Fatalf("through a healthy proxy: %v", err)
	}
	p.Set(func(p *Proxy) { p.Delay = 100 * time.Millisecond })
	if began := time.Now(); back(c, 10*time.Second) != nil || time.Since(began) < 200*time.Millisecond {
		t.Errorf("with a delay of 100 ms each way it took %v", time.Since(began))
	}
	p.Set(func(p *Proxy) { p.Delay, p.frozen = 0, true })
	if err := back(c, 300*time.Millisecond); err == nil {
		t.Error("something passed a frozen proxy")
	}
	p.Set(func(p *Proxy) { p.frozen = false })
	if err := back(c, 10*time.Second); err != nil {
		t.Errorf("after it was frozen: %v", err)
	}
	p.Cut()
	for err = nil; err == nil; { // the byte from the frozen time may still be there
		err = back(c, 10*time.Second)
	}
	p.Set(func(p *Proxy) { p.down = true })
	// It may end while it is being made.
	if c, err := net.Dial("tcp", p.addr()); err == nil {
		defer c.Close()
		if back(c, 10*time.Second) == nil {
			t.Error("a connection was accepted that should be refused")
		}
	}
}

// Brokers that start side by side listen later: none gets a port that another waits for.
func TestLowPort_ReturnsNoneTwice(t *testing.T) {
	given := map[int]bool{}
	for range 1000 {
		port, err := lowPort()
		must(t, err)
		if given[port] {
			t.Fatalf("port %d was returned twice", port)
		}
		given[port] = true
	}
}
