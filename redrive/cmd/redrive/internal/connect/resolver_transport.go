package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

// transport decides on TLS. An explicit no overrides the TLS options of lower layers, as of the
// profile, and contradicts those of its own layer.
func (r *resolver) transport() {
	on, wanted := r.truth(useTLS)
	insecure, unchecked := r.truth(tlsInsecure)
	if !unchecked {
		insecure = value{}
	}
	ca, cert, key, name := r.get(tlsCA), r.get(tlsCert), r.get(tlsKey), r.get(tlsName)
	for _, v := range []value{ca, cert, key, name, insecure} {
		switch {
		case !v.given():
		case on.given() && !wanted && v.rank <= on.rank:
			r.problem("%s is off, and %s needs it: omit one", on.from, v.from)
		case !on.given():
			wanted = true
		}
	}
	if !wanted {
		return
	}
	r.cluster.tls = true
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name.text}
	if ca.given() {
		var err error
		if cfg.RootCAs, err = authorities(ca.text); err != nil {
			r.problem("%s: %w", ca.from, err)
		}
	}
	switch {
	case cert.given() && !key.given():
		r.problem("%s is given without its key: give --%s too", cert.from, tlsKey)
	case key.given() && !cert.given():
		r.problem("%s is given without its certificate: give --%s too", key.from, tlsCert)
	case cert.given():
		pair, err := tls.LoadX509KeyPair(cert.text, key.text)
		if err != nil {
			r.problem("%s and %s: %w", cert.from, key.from, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if unchecked {
		cfg.InsecureSkipVerify = true
		r.warn("%s: no broker's certificate is checked, so an attacker on the network can read and change everything; give --%s instead", insecure.from, tlsCA)
	}
	r.option(kgo.DialTLSConfig(cfg))
}

func authorities(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return pool, nil
}
