package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/sidingkafka/siding/serve/payload"
)

const aString = `{"schema":"\"string\""}`

// server is a registry that answers as f does.
func server(t *testing.T, f http.HandlerFunc) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		f(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Each fault is one line, and the same letter causes no second request. Where the registry as a
// whole fails, another schema causes none either, until it was left alone for a while.
func TestClient_FaultsAreOneLine(t *testing.T) {
	t.Parallel()
	gzipped := "\x1f\x8b\x08\x00"
	for _, c := range []struct {
		name, want string
		f          http.HandlerFunc
		down       bool
	}{
		{"unknown", "schema 1: the registry does not know it", answer(404, `{"error_code":40403,"message":"Schema not found"}`), false},
		{"broken", "schema 1: the registry answers 500 Internal Server Error: x y", answer(500, "{\"message\":\"x\\n\\u001by\"}"), true},
		{"proxy", "schema 1: the registry answers 502 Bad Gateway", answer(502, "<html>"+strings.Repeat("x", 100_000)), true},
		{"refused", "schema 1: the registry refuses us: 401 Unauthorized", answer(401, ""), true},
		{"busy", "schema 1: the registry answers 429 Too Many Requests", answer(429, ""), true},
		{"html", "schema 1: the registry's answer can't be read: ", answer(200, "<html>"), false},
		{"empty", "schema 1: the registry's answer has no schema", answer(200, `{}`), false},
		{"type", "schema 1: the registry's answer can't be read: ", answer(200, `{"schema":"x","schemaType":"THRIFT"}`), false},
		{"array", "schema 1: the registry's answer can't be read: ", answer(200, `[]`), false},
		{"endless", "schema 1: the registry's answer can't be read: its answer has more than 2097152 bytes", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, false},
		{"large", "schema 1: it has more than 1048576 bytes", answer(200, `{"schema":"`+strings.Repeat(" ", 1<<20+1)+`"}`), false},
		{"short", "schema 1: the registry's answer can't be read: unexpected EOF", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"schema":`)
		}, false},
		{"gzip", "schema 1: the registry's answer can't be read: ", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, gzipped)
		}, false},
		{"cut off", "schema 1: the registry can't be reached: EOF", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = c.Close()
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, asked := server(t, c.f)
			r := open(t, payload.Registry{URL: url})
			for range 3 {
				if got := read(t, r, value(framed(1, 2, 'x'))); !strings.HasPrefix(got, c.want) || strings.ContainsAny(got, "\n\x1b") || len(got) > 500 {
					t.Errorf("%q, want %q", got, c.want)
				}
			}
			for range 3 {
				_ = read(t, r, value(framed(2, 2, 'x')))
			}
			want := int32(2)
			if c.down {
				want = 1
			}
			if n := asked.Load(); n != want {
				t.Errorf("it was asked %d times, want %d", n, want)
			}
			r.later(pause)
			if _ = read(t, r, value(framed(2, 2, 'x'))); asked.Load() != 2 {
				t.Errorf("after a pause it was asked %d times", asked.Load())
			}
		})
	}
}

// A registry that takes a connection and says nothing, or a byte now and then, is cut off.
func TestClient_SlowAnswersAreCutOff(t *testing.T) {
	t.Parallel()
	const begin = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"
	for name, c := range map[string]struct{ first, then string }{"silent": {}, "headers": {begin, "X: y\r\n"}, "body": {begin + "\r\n", ""}, "drip": {begin + "\r\n", " "}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var all sync.WaitGroup
				client, err := newClient(payload.Registry{URL: "http://registry"}, func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					all.Go(func() {
						_, _ = theirs.Read(make([]byte, 1)) // a request begins
						all.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
						drip(theirs, c.first, c.then)
					})
					return ours, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				r, begin := &Registry{newSource(client, time.Now)}, time.Now()
				for id := range uint32(2) { // the second is not asked for
					if got := read(t, r, value(framed(id+1))); !strings.Contains(got, "does not answer within 5s") || time.Since(begin) != answerTime {
						t.Errorf("after %v: %s", time.Since(begin), got)
					}
				}
				all.Wait()
			})
		})
	}
}

// drip writes to a connection until it is closed.
func drip(to net.Conn, first, then string) {
	_, err := io.WriteString(to, first)
	for err == nil {
		time.Sleep(time.Second)
		_, err = io.WriteString(to, then)
	}
	_ = to.Close()
}

// A registry says more than is read here, and what a later version says may have other words.
func TestClient_ReadsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	url, _ := server(t, answer(200, `{"schema":"\"string\"","maxId":7,"ts":"x","metadata":7,"ruleSet":{"domainRules":[{"kind":"LATER","mode":"LATER"}]}}`))
	if got := read(t, open(t, payload.Registry{URL: url}), value(framed(1, 2, 'x'))); got != `"x"` {
		t.Error(got)
	}
}

// An answer that leads elsewhere is not followed: the address is the operator's.
func TestClient_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other, asked := server(t, answer(200, aString))
	url, _ := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusFound) })
	r := open(t, payload.Registry{URL: url, Token: "secret"})
	if got := read(t, r, value(framed(1, 2, 'x'))); got != "schema 1: the registry answers 302 Found" || asked.Load() != 0 {
		t.Errorf("%s: the other was asked %d times", got, asked.Load())
	}
}

func TestClient_SaysWhoAsks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("p\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		is   payload.Registry
		want string
	}{
		{payload.Registry{Username: "u", Password: "p"}, "Basic dTpw"}, {payload.Registry{Token: "t"}, "Bearer t"}, {payload.Registry{Username: "u", PasswordFile: file}, "Basic dTpw"},
	} {
		f := fake(t, srfake.WithAuth(c.want))
		f.SeedSchema("s", 1, 1, avroOf(`"string"`))
		c.is.URL = f.URL()
		if got := read(t, open(t, c.is), value(framed(1, 2, 'x'))); got != `"x"` {
			t.Errorf("%+v: %s", c.is, got)
		}
		if got := read(t, open(t, payload.Registry{URL: f.URL()}), value(framed(1, 2, 'x'))); !strings.Contains(got, "refuses us") {
			t.Errorf("nobody: %s", got)
		}
	}
}

// The certificate is read again at each connection, since it ends some day.
func TestClient_HasACertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := payload.Registry{CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"schema":"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"%s\"]}"}`, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	s.TLS = tlsRequired()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	write(t, c.CAFile, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	certificate(t, c, "first")
	c.URL = s.URL
	r := open(t, c)
	if got := read(t, r, value(framed(1, 0))); got != `"first"` {
		t.Error(got)
	}
	certificate(t, c, "second")
	s.CloseClientConnections()
	if got := read(t, r, value(framed(2, 0))); got != `"second"` {
		t.Error(got)
	}
	if got := read(t, open(t, payload.Registry{URL: s.URL}), value(framed(1, 0))); !strings.Contains(got, "can't be reached: ") || !strings.Contains(got, "certificate") {
		t.Errorf("without its authority: %s", got)
	}
	if got := read(t, open(t, payload.Registry{URL: s.URL, CAFile: c.CAFile}), value(framed(1, 0))); !strings.Contains(got, "can't be reached: ") {
		t.Errorf("without a certificate: %s", got)
	}
	for _, broken := range []payload.Registry{{URL: s.URL, CAFile: c.KeyFile}, {URL: s.URL, CAFile: "gone"}, {URL: s.URL, CertFile: c.CAFile, KeyFile: c.CAFile}} {
		if _, err := New(broken); err == nil {
			t.Errorf("%+v is opened", broken)
		}
	}
}

func write(t *testing.T, name string, b *pem.Block) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// certificate writes a certificate for somebody.
func certificate(t *testing.T, c payload.Registry, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.CertFile, &pem.Block{Type: "CERTIFICATE", Bytes: cert})
	write(t, c.KeyFile, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
}
