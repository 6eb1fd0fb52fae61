package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// authority signs the certificates of brokers and of their clients.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.pem, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	block, _ := pem.Decode(a.pem)
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a certificate, and the key that it is for. The first one is the authority's own.
func (a *authority) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	by, with := a.cert, a.key
	if by == nil {
		by, with = c, key
	}
	c.SerialNumber, c.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), true
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// issue returns a certificate for a name and its key, as PEM. A broker's certificate is for its
// host name; a client's user has the name CN=<name>.
func (a *authority) issue(name string) (cert, key []byte) {
	a.t.Helper()
	cert, private := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// trusting is the configuration of a client of the host that trusts the authority.
func (a *authority) trusting(host string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}
}

// as is the same of a client with a certificate for a name.
func (a *authority) as(name, host string) *tls.Config {
	a.t.Helper()
	cert, err := tls.X509KeyPair(a.issue(name))
	if err != nil {
		a.t.Fatal(err)
	}
	c := a.trusting(host)
	c.Certificates = []tls.Certificate{cert}
	return c
}
