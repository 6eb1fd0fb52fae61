package serve_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
)

// overHTTP2 runs a server that speaks TLS, and returns a client of it.
func (is *station) overHTTP2() http.RoundTripper {
	config := serve.TLSOfServer(is.t)
	connect := is.listensAs(func(l net.Listener) net.Listener { return tls.NewListener(l, config) })
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return connect(), nil },
	}
	is.t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// A page on which nothing happens is followed over HTTP/2 as long as over HTTP/1.1: until the
// server ends the stream.
func TestServer_FollowsAQuietPageOverHTTP2(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		client := is.overHTTP2()
		is.knowsTheLetter("Authorization", "Bearer ada")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost/topics/orders.dlq", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer ada")
		r.Header.Set("Accept", "text/event-stream")
		begun := time.Now()
		answer, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if took := time.Since(begun); answer.ProtoMajor != 2 || err != nil || took < 4*time.Minute || took > 6*time.Minute {
			t.Errorf("%s over %s ended after %v: %s, %v", answer.Status, answer.Proto, took, text, err)
		}
	})
}
