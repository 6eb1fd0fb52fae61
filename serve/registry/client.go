package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/sidingkafka/siding/serve/payload"
)

// Bounds of what a registry is asked and answers.
const (
	mostAnswer = 2 << 20 // bytes, of which a schema's text has at most the half
	answerTime = 5 * time.Second
	// pause is how long a registry is left alone that could not be reached.
	pause = 10 * time.Second
	// mostAtOnce is how many requests are under way.
	mostAtOnce = 4
)

// client asks a registry. It is safe for concurrent use.
type client struct {
	asks  *sr.Client
	idle  func() // closes connections that nobody uses
	slots chan struct{}
	now   func() time.Time

	mu    sync.Mutex
	until time.Time // it is not asked before
	down  error     // why
}

// dialer opens connections; nil is the system's network.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func newClient(c payload.Registry, dial dialer) (*client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.URL == "" {
		return nil, errors.New("the URL is missing")
	}
	if _, err := c.Secret(); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	if dial != nil {
		transport.Proxy, transport.DialContext = nil, dial
	}
	var err error
	if transport.TLSClientConfig, err = tlsOf(c); err != nil {
		return nil, err
	}
	asks, err := sr.NewClient(sr.URLs(c.URL), sr.UserAgent("siding"), sr.HTTPClient(&http.Client{
		Timeout:       answerTime,
		Transport:     authorized{bounded{transport}, &c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}))
	if err != nil {
		return nil, err
	}
	return &client{asks: asks, idle: transport.CloseIdleConnections, slots: make(chan struct{}, mostAtOnce), now: time.Now}, nil
}

func tlsOf(c payload.Registry) (*tls.Config, error) {
	is := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, err
		}
		if is.RootCAs = x509.NewCertPool(); !is.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", c.CAFile)
		}
	}
	if c.CertFile == "" {
		return is, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%s and %s are no certificate and its key in PEM form: %w", c.CertFile, c.KeyFile, err)
		}
		return &pair, nil
	}
	is.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	_, err := load()
	return is, err
}

// authorized adds the secret of now to requests.
type authorized struct {
	http.RoundTripper
	is *payload.Registry
}

// RoundTrip implements [http.RoundTripper].
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	secret, err := a.is.Secret()
	if err != nil {
		return nil, err
	}
	if a.is.Sends() {
		r = r.Clone(r.Context())
		if a.is.Username != "" {
			r.SetBasicAuth(a.is.Username, secret)
		} else {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
	}
	return a.RoundTripper.RoundTrip(r)
}

// bounded cuts answers off that are too long.
type bounded struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &cut{answer.Body, mostAnswer}
	}
	return answer, err
}

var errLong = fmt.Errorf("its answer has more than %d bytes", mostAnswer)

// cut is a body that ends with an error if it is too long.
type cut struct {
	io.ReadCloser
	left int
}

// Read implements [io.Reader].
func (c *cut) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLong
	}
	n, err := c.ReadCloser.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// pausedError is about what was not asked.
type pausedError struct{ err error }

func (e *pausedError) Error() string { return e.err.Error() }
func (e *pausedError) Unwrap() error { return e.err }

// document is what a registry has about a schema, as far as it is read.
type document struct {
	Schema     string               `json:"schema"`
	Type       sr.SchemaType        `json:"schemaType"`
	References []sr.SchemaReference `json:"references"`
}

// get asks for the schema at a path.
func (c *client) get(ctx context.Context, path string) (is document, err error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return is, &pausedError{errors.New("the registry answers too slowly")}
	}
	c.mu.Lock()
	if now := c.now(); now.Before(c.until) {
		defer c.mu.Unlock()
		return is, &pausedError{c.down}
	}
	c.mu.Unlock()
	err = c.asks.Do(ctx, http.MethodGet, path, nil, &is)
	if err == nil {
		return is, nil
	}
	line, down := explained(err)
	if err = errors.New(line); down {
		c.mu.Lock()
		c.until, c.down = c.now().Add(pause), err
		c.mu.Unlock()
	}
	return is, err
}

// explained is an error in one line, and whether others would have the same.
func explained(err error) (line string, down bool) {
	answer, ok := errors.AsType[*sr.ResponseError](err)
	if !ok {
		failed, sent := errors.AsType[*url.Error](err)
		slow, ok := errors.AsType[net.Error](err)
		switch {
		case ok && slow.Timeout():
			return fmt.Sprintf("the registry does not answer within %v", answerTime), true
		case sent:
			return "the registry can't be reached: " + oneLine(failed.Err.Error()), true
		}
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			err = inner
		}
		return "the registry's answer can't be read: " + oneLine(err.Error()), false
	}
	status := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch answer.StatusCode {
	case http.StatusNotFound:
		return "the registry does not know it", false
	case http.StatusUnauthorized, http.StatusForbidden:
		return "the registry refuses us: " + status, true
	}
	if answer.Message != "" {
		status += ": " + oneLine(answer.Message)
	}
	return "the registry answers " + status, answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests
}

// oneLine makes one short line of the text of a stranger.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), 1000)])
	if s = strings.Join(strings.Fields(s), " "); len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}
