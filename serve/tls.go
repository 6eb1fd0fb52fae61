package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// certificate is a certificate whose files are read again when they change. It is safe for
// concurrent use.
type certificate struct {
	files TLS
	log   *slog.Logger

	mu     sync.Mutex
	is     *tls.Certificate
	stamps [2]stamp // of the files that were read last
	looked time.Time
}

// stamp distinguishes one content of a file from another.
type stamp struct{ changed, size int64 }

// looksEvery is how often files that may change are looked at, at most.
const looksEvery = 10 * time.Second

// config returns nil if no certificate is configured.
func (t TLS) config(log *slog.Logger) (*tls.Config, error) {
	if t.CertFile == "" || t.KeyFile == "" {
		return nil, nil
	}
	c := &certificate{files: t, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
		// A browser opens six connections of HTTP/1.1 at most, and each open page needs a stream.
		NextProtos: []string{"h2", "http/1.1"},
	}, nil
}

// read reads the files, if one of them has changed since they were read.
func (c *certificate) read() error {
	var now [2]stamp
	for i, f := range []struct{ key, name string }{{"tls.cert-file", c.files.CertFile}, {"tls.key-file", c.files.KeyFile}} {
		info, err := os.Stat(f.name)
		if err != nil {
			return yamlfile.NamedBy(f.key, err)
		}
		now[i] = stamp{info.ModTime().UnixNano(), info.Size()}
	}
	if now == c.stamps {
		return nil
	}
	c.stamps = now // files that do not fit are logged once
	is, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return &KeyError{Key: "tls.cert-file", Problem: fmt.Sprintf("%s and %s are no certificate and its key in PEM form: %v", c.files.CertFile, c.files.KeyFile, err)}
	}
	c.is = &is
	return nil
}

// get returns the certificate. While its files are broken, or are being replaced, it is the one
// before.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= looksEvery {
		c.looked = now
		if err := c.read(); err != nil {
			c.log.Error("siding: the certificate cannot be read; the one before counts", "error", err)
		}
	}
	return c.is
}
