package notify_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// virtually runs a test in virtual time, with a receiver that posts to h. The library dials over
// the transport of the process, so such tests are not parallel.
func virtually(t *testing.T, h http.HandlerFunc, test func(t *testing.T, r *notify.Receiver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		l, err := vn.Listen("tcp", "localhost:80")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: h}
		ended := make(chan struct{})
		go func() {
			_ = server.Serve(l)
			close(ended)
		}()
		before := http.DefaultTransport
		transport := &http.Transport{DialContext: vn.DialContext, DisableKeepAlives: true}
		http.DefaultTransport = transport
		r, stop, _ := runsTo(t, "generic+http://localhost:80/?template=json", 1000, t.Output())
		defer func() {
			stop()
			server.Close()
			<-ended
			http.DefaultTransport = before
			time.Sleep(time.Minute) // handlers have ended
		}()
		test(t, r)
	})
}

// ends sends a message, and returns a channel with its end.
func ends(t *testing.T, r *notify.Receiver, m notify.Message) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	m.Done = func(err error) { done <- err }
	if !r.Send(m) {
		t.Fatal("there is no room")
	}
	return done
}
