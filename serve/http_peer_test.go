package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/serve/internal/patient"
)

// frozen is a connection of which nothing is read any more, from a moment on.
type frozen struct {
	net.Conn
	since, ended chan struct{}
}

func (f *frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	select {
	case <-f.since:
		<-f.ended
	default:
	}
	return n, err
}

// A client that reads nothing of its connection holds its answers for half a minute. The limit of
// an answer does not end it over HTTP/2: the frame that would waits for the client, too.
func TestServer_EndsAConnectionThatTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, took := make(chan struct{}), make(chan time.Duration, 1)
		var once sync.Once
		server := (&Server{log: slog.New(slog.DiscardHandler)}).newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			out, at := patient.New(w, 10*time.Second), time.Now()
			defer out.End()
			for part := make([]byte, 1<<20); out.Send(part) == nil; {
				once.Do(func() { close(begun) })
			}
			took <- time.Since(at)
		}))
		network := new(kfake.VirtualNetwork)
		l, err := network.Listen("tcp", "127.0.0.1:443")
		if err != nil {
			t.Fatal(err)
		}
		config := TLSOfServer(t)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(tls.NewListener(l, config)) }()
		over := make(chan struct{})
		client := &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 30},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				c, err := network.DialContext(ctx, "tcp", "127.0.0.1:443")
				return &frozen{c, begun, over}, err
			},
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case took := <-took:
			if took > 2*peerTime {
				t.Errorf("the answer ended after %v, want %v", took, peerTime)
			}
		case <-time.After(time.Hour):
			t.Error("the answer has not ended after an hour")
		}
		close(over)
		_ = answer.Body.Close()
		client.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
