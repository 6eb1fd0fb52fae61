package serve

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate is a certificate whose files are read again when they change.
type certificate struct {
	files TLS

	mu      sync.Mutex
	is      *tls.Certificate
	changed time.Time // the later one of the files'
	looked  time.Time
}

// looksEvery is how often files that may change are looked at, at most.
const looksEvery = 10 * time.Second

// config returns nil if no certificate is configured.
func (t TLS) config() (*tls.Config, error) {
	if t.CertFile == "" || t.KeyFile == "" {
		return nil, nil
	}
	c := &certificate{files: t}
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil }}, nil
}

// read reads the files, if one of them has changed.
func (c *certificate) read() error {
	var changed time.Time
	for _, f := range []struct{ key, name string }{{"tls.cert-file", c.files.CertFile}, {"tls.key-file", c.files.KeyFile}} {
		info, err := os.Stat(f.name)
		if err != nil {
			return ofFile(f.key, err)
		}
		if at := info.ModTime(); at.After(changed) {
			changed = at
		}
	}
	if c.is != nil && changed.Equal(c.changed) {
		return nil
	}
	is, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return &KeyError{Key: "tls.cert-file", Problem: fmt.Sprintf("%s and %s are no certificate and its key in PEM form: %v", c.files.CertFile, c.files.KeyFile, err)}
	}
	c.is, c.changed = &is, changed
	return nil
}

// get returns the certificate. While its files are being replaced, it is the one before.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= looksEvery {
		c.looked = now
		_ = c.read() // the next look tries again
	}
	return c.is
}
