package servecmd

import (
	"net"
	"testing"

	"github.com/sidingkafka/siding/serve"
)

// A server that listens on all interfaces printed https://[::]:8643 alone, which no browser opens.
func TestAddresses_BeginWithTheOneThatPeopleKnow(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv6zero, Port: 8643}
	known := "https://siding.example.com"
	for _, c := range []struct {
		cfg  serve.Config
		want string
	}{
		{serve.Config{URL: known}, known + ", listening on http://[::]:8643"},
		{serve.Config{URL: known, TLS: serve.TLS{CertFile: "tls.crt"}}, known + ", listening on https://[::]:8643"},
		{serve.Config{URL: "http://[::]:8643"}, "http://[::]:8643"},
		{serve.Config{TLS: serve.TLS{CertFile: "tls.crt"}}, "https://[::]:8643"},
		{serve.Config{}, "http://[::]:8643"},
	} {
		if got := addresses(&c.cfg, at); got != c.want {
			t.Errorf("%+v: %s, want %s", c.cfg, got, c.want)
		}
	}
}
