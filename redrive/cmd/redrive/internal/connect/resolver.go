package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/retrytopics"
)

// resolver turns settings into a cluster, and gathers what is wrong with them.
type resolver struct {
	layers
	cluster *Cluster
	errs    []error
}

func (r *resolver) problem(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// truth reads a setting that is yes or no; not given is no.
func (r *resolver) truth(name string) (v value, yes bool) {
	v = r.get(name)
	switch strings.ToLower(v.text) {
	case "true", "yes", "1", "on":
		yes = true
	case "", "false", "no", "0", "off":
	default:
		r.problem("%s: %q is neither true nor false", v.from, v.text)
	}
	return v, yes
}

func (r *resolver) option(o kgo.Opt) { r.cluster.Opts = append(r.cluster.Opts, o) }

func (r *resolver) warn(format string, args ...any) {
	r.cluster.Warnings = append(r.cluster.Warnings, fmt.Sprintf(format, args...))
}

func (r *resolver) address(file string) {
	v := r.get(brokers)
	for part := range strings.SplitSeq(v.text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if err := addressProblem(part); err != nil {
			r.problem("%s: %w", v.from, err)
			continue
		}
		r.cluster.Brokers = append(r.cluster.Brokers, part)
	}
	switch {
	case v.given() && len(r.cluster.Brokers) == 0 && len(r.errs) == 0:
		r.problem("%s has no address: give host:port of some brokers", v.from)
	case !v.given():
		in := "a profile"
		if file != "" {
			in = "a profile in " + file
		}
		r.problem("no brokers are given: use --brokers host:port,…, %s or %s", Variable(brokers), in)
	}
	r.option(kgo.SeedBrokers(r.cluster.Brokers...))

	r.option(kgo.ClientID(cmp.Or(r.get(clientID).text, defaultClientID)))

	if t := r.get(timeout); t.given() {
		d, err := time.ParseDuration(t.text)
		if err != nil || d <= 0 {
			r.problem("%s: %q is not a duration above zero, such as 10s or 1m", t.from, t.text)
			return
		}
		r.cluster.Timeout = d
	}
	r.option(kgo.DialTimeout(r.cluster.Timeout))
}

// addressProblem does not quote an address that may hold a password.
func addressProblem(s string) error {
	if strings.Contains(s, "@") {
		return errors.New("an address has an @: give name and password by --sasl-user and --sasl-password-file")
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return fmt.Errorf("%q: omit %s://, give %s and choose --tls and --sasl", s, scheme, rest)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Contains(s, ":") || strings.ContainsAny(s, "[] ") {
			return fmt.Errorf("%q is not host:port", s)
		}
		return nil // Kafka's own port
	}
	if n, err := strconv.Atoi(port); host == "" || err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q is not host:port", s)
	}
	return nil
}

func (r *resolver) naming() {
	r.cluster.Naming = retrytopics.Naming{
		Retry:  r.get(retryName).text,
		DLQ:    r.get(dlqName).text,
		Ledger: r.get(ledgerName).text,
	}
	if err := r.cluster.Naming.Validate(); err != nil {
		r.problem("%w (by --%s, --%s, --%s)", err, retryName, dlqName, ledgerName)
	}
}

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

// authentication decides on SASL, by the same rule of layers as transport.
func (r *resolver) authentication() {
	how := r.get(mechanism)
	name := strings.ToUpper(how.text)
	if how.given() && name != saslNone && !slices.Contains(Mechanisms, name) {
		r.problem("%s: %q is not a known mechanism: choose %s, or none", how.from, how.text, strings.Join(Mechanisms, ", "))
		return
	}
	username := r.get(user)
	pass, passErr := r.secret(password)
	tok, tokErr := r.secret(token)
	byToken := name == saslOAuth
	byPassword := slices.Contains(Mechanisms, name) && !byToken
	for _, part := range []struct {
		value
		err    error
		needed bool
		how    string // to give it
	}{
		{username, nil, byPassword, "--" + user},
		{pass.value, passErr, byPassword, "--" + password + fileSuffix + " or " + Variable(password)},
		{tok.value, tokErr, byToken, "--" + token + fileSuffix + " or " + Variable(token)},
	} {
		switch {
		case part.err != nil && (part.needed || !how.given()):
			r.errs = append(r.errs, part.err)
		case part.needed && !part.given():
			r.problem("%s: %s needs %s", how.from, name, part.how)
		case part.given() && !how.given():
			r.problem("%s is given without a mechanism: give --%s too (%s)", part.from, mechanism, strings.Join(Mechanisms, ", "))
		case part.given() && !part.needed && part.rank <= how.rank:
			r.problem("%s is given, and %s (%s) does not take it: omit one", part.from, name, how.from)
		}
	}
	if !slices.Contains(Mechanisms, name) {
		return
	}
	secret := pass
	if byToken {
		secret = tok
	}
	if secret.given() {
		if _, err := secret.reveal(); err != nil {
			r.errs = append(r.errs, err)
		}
	}
	r.cluster.sasl, r.cluster.user = name, username.text
	if !r.cluster.tls && (name == saslPlain || name == saslOAuth) {
		r.warn("%s without TLS sends the secret over the network unencrypted; give --%s", name, useTLS)
	}
	r.option(kgo.SASL(mechanismOf(name, username.text, secret)))
}

// mechanismOf reads the secret again for each connection, since files of secrets are replaced.
func mechanismOf(name, user string, secret Secret) sasl.Mechanism {
	scramAuth := func(context.Context) (scram.Auth, error) {
		pass, err := secret.reveal()
		return scram.Auth{User: user, Pass: pass}, err
	}
	switch name {
	case saslSCRAM256:
		return scram.Sha256(scramAuth)
	case saslSCRAM512:
		return scram.Sha512(scramAuth)
	case saslOAuth:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := secret.reveal()
			return oauth.Auth{Token: token}, err
		})
	}
	return plain.Plain(func(context.Context) (plain.Auth, error) {
		pass, err := secret.reveal()
		return plain.Auth{User: user, Pass: pass}, err
	})
}

// redaction reads what to hide. The places where settings come from add up: a flag hides one more
// thing, and what the profile hides stays hidden.
func (r *resolver) redaction(nothing bool) {
	paths, headers, patterns := r.all(hidePaths), r.all(hideHeaders), r.all(hidePattern)
	rules, err := redact.Parse(paths, headers, patterns)
	switch {
	case err != nil:
		r.errs = append(r.errs, err)
	case !nothing:
		r.cluster.Redact = rules
		r.cluster.RedactTexts = RedactTexts{texts(paths), texts(headers), texts(patterns)}
	}
}

func texts(rules []redact.Text) (all []string) {
	for _, t := range rules {
		all = append(all, t.Text)
	}
	return all
}

// Redaction returns a cluster that has only what to hide, by flags and variables. Profiles are of
// other clusters, and do not count.
func (f *Flags) Redaction(env Environment) (*Cluster, error) {
	r := &resolver{layers: layers{commandLine(f.set), variables(env.Getenv)}, cluster: &Cluster{}}
	r.redaction(f.showAll)
	return r.cluster, errors.Join(r.errs...)
}
