package drivers_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func get(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.ReadAll(res.Body)
	return err
}

func TestHTTP_OutagesAreRetried(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	means(t, "no listener", get(ctx, http.DefaultClient, "http://"+closedPort(t)), "net.refused", "retry")
	means(t, "the server hangs up", get(ctx, http.DefaultClient, "http://"+listen(t, hangUp)), "net.eof", "retry")
	means(t, "the server resets", get(ctx, http.DefaultClient, "http://"+listen(t, func(c net.Conn) {
		hangUp(c)
		_ = c.(*net.TCPConn).SetLinger(0)
	})), "net.reset", "retry")

	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	}))
	t.Cleanup(silent.Close)
	means(t, "the client's timeout", get(ctx, &http.Client{Timeout: 20 * time.Millisecond}, silent.URL), "timeout", "retry")
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	means(t, "the context's timeout", get(short, http.DefaultClient, silent.URL), "timeout", "retry")
	over, cancel := context.WithCancel(ctx)
	cancel()
	means(t, "the context is cancelled", get(over, http.DefaultClient, silent.URL), "canceled", "retry")

	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}))
	t.Cleanup(cut.Close)
	means(t, "the body is cut short", get(ctx, http.DefaultClient, cut.URL), "net.eof", "retry")

	unresolved := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }}
	_, err := unresolved.LookupHost(ctx, "registry.invalid")
	means(t, "no name server answers", err, "net.dns", "retry")
}
