package brokers

import (
	"context"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
