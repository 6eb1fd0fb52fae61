package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// issued is a certificate of 127.0.0.1 and its key, in PEM form.
type issued struct{ cert, key []byte }

func issue(t *testing.T, serial int64) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

// put writes a file that was changed at a time.
func put(t *testing.T, file string, text []byte, at time.Time) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

// filesOf writes a certificate and its key.
func filesOf(t *testing.T, is issued) TLS {
	t.Helper()
	dir := t.TempDir()
	files := TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	put(t, files.CertFile, is.cert, time.Now())
	put(t, files.KeyFile, is.key, time.Now())
	return files
}

// overTLS serves with a certificate, and returns the address and those who know the certificate.
func overTLS(t *testing.T, own issued) (address string, known *x509.CertPool) {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	s, err := New(Config{Kafka: []kgo.Opt{kgo.SeedBrokers(fake.ListenAddrs()...)}, Listen: "127.0.0.1:0", TLS: filesOf(t, own)}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	known = x509.NewCertPool()
	known.AppendCertsFromPEM(own.cert)
	return l.Addr().String(), known
}

// With a certificate the server speaks HTTPS, and nothing else.
func TestServer_SpeaksHTTPS(t *testing.T) {
	t.Parallel()
	address, known := overTLS(t, issue(t, 7))
	ask := func(method, scheme, path string, with *tls.Config) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: with, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		answer, err := transport.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		return answer, err
	}
	answer, err := ask(http.MethodGet, "https", "/livez", &tls.Config{RootCAs: known})
	if err != nil || answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 || answer.TLS.PeerCertificates[0].SerialNumber.Int64() != 7 {
		t.Fatalf("over TLS: %+v, %v", answer, err)
	}
	// a cookie that was set over TLS does not travel without
	if answer, err = ask(http.MethodPost, "https", "/theme", &tls.Config{RootCAs: known}); err != nil || len(answer.Cookies()) != 1 || !answer.Cookies()[0].Secure {
		t.Errorf("a cookie: %+v, %v", answer, err)
	}
	if _, err = ask(http.MethodGet, "https", "/livez", &tls.Config{RootCAs: x509.NewCertPool()}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("to a client that does not know the certificate: %v", err)
	}
	if _, err = ask(http.MethodGet, "https", "/livez", &tls.Config{RootCAs: known, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("the server speaks TLS 1.1")
	}
	if answer, err = ask(http.MethodGet, "http", "/livez", nil); err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %+v, %v", answer, err)
	}
}

// Renewed files count without a restart. Until they are whole, and fit each other, those before
// count, and the log says so once.
func TestCertificate_IsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, two, three := issue(t, 1), issue(t, 2), issue(t, 3)
		files := filesOf(t, one)
		begun := time.Now()
		var words bytes.Buffer
		config, err := files.config(slog.New(slog.NewTextHandler(&words, nil)))
		if err != nil {
			t.Fatal(err)
		}
		// shows connects after the files may have been looked at again.
		shows := func(what string, serial int64, logged int) {
			t.Helper()
			for range 3 {
				time.Sleep(looksEvery)
				near, far := net.Pipe()
				server, client := tls.Server(near, config), tls.Client(far, &tls.Config{InsecureSkipVerify: true})
				done := make(chan error, 1)
				go func() { done <- server.HandshakeContext(t.Context()) }()
				if err := client.HandshakeContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := client.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial {
					t.Errorf("%s: the certificate is %d, want %d", what, got, serial)
				}
				_, _ = near.Close(), far.Close()
			}
			if n := strings.Count(words.String(), "the certificate cannot be read; the one before counts"); n != logged {
				t.Errorf("%s: the log says it %d times, want %d: %s", what, n, logged, words.String())
			}
		}
		shows("at first", 1, 0)
		put(t, files.CertFile, two.cert[:len(two.cert)/2], begun.Add(time.Second))
		shows("half a file", 1, 1)
		put(t, files.CertFile, two.cert, begun.Add(2*time.Second))
		shows("a key of another certificate", 1, 2)
		put(t, files.KeyFile, two.key, begun.Add(time.Second))
		shows("both files", 2, 2)
		// A tool that keeps times may put older files in place.
		put(t, files.CertFile, three.cert, begun.Add(-time.Hour))
		put(t, files.KeyFile, three.key, begun.Add(-time.Hour))
		shows("older files", 3, 2)
		if err := os.Remove(files.KeyFile); err != nil {
			t.Fatal(err)
		}
		shows("no key", 3, 5)
	})
}
