package patient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/serve/internal/patient"
)

// serve answers by a handler in virtual time, and returns a client of a version of HTTP. conn, if
// it is not nil, wraps the client's connection.
func serve(t *testing.T, http2 bool, h http.HandlerFunc, conn func(net.Conn) net.Conn) *http.Client {
	t.Helper()
	network := new(kfake.VirtualNetwork)
	l, err := network.Listen("tcp", "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	server := &http.Server{Handler: h, Protocols: &protocols, ReadHeaderTimeout: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := network.DialContext(ctx, "tcp", "127.0.0.1:80")
		if err == nil && conn != nil {
			c = conn(c)
		}
		return c, err
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}
}

func versions(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Helper()
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, http2) })
		})
	}
}

// The parts come whenever there are some, though the pauses are longer than a part may take, and
// than the answer might take before.
func TestWriter_PausesMayBeLong(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, http2 bool) {
		client := serve(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
			out := patient.New(w, 10*time.Second)
			defer out.End()
			for _, part := range []string{"one ", "two ", "three"} {
				time.Sleep(5 * time.Minute)
				if err := out.Send([]byte(part)); err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Minute)
				if _, err := out.Write([]byte("; ")); err != nil {
					t.Error(err)
				}
			}
		}, nil)
		answer, err := client.Get("http://siding/")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "one ; two ; three; " {
			t.Errorf("got %q, %v", text, err)
		}
	})
}

// A client that does not read ends the answer, within a part or behind the last one.
func TestWriter_GivesUpAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	for what, write := range map[string]func(out *patient.Writer){
		"parts": func(out *patient.Writer) {
			for out.Send([]byte(strings.Repeat("x", 1<<20))) == nil {
			}
		},
		"a part that waits": func(out *patient.Writer) {
			for {
				if _, err := out.Write([]byte(strings.Repeat("x", 1<<20))); err != nil {
					return
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			versions(t, func(t *testing.T, http2 bool) {
				took := make(chan time.Duration, 1)
				client := serve(t, http2, func(w http.ResponseWriter, _ *http.Request) {
					begun := time.Now()
					out := patient.New(w, limit)
					defer out.End()
					write(out)
					took <- time.Since(begun)
				}, nil)
				answer, err := client.Get("http://siding/")
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				if took := <-took; took < limit || took > 2*limit {
					t.Errorf("given up after %v, want %v", took, limit)
				}
			})
		})
	}
}
