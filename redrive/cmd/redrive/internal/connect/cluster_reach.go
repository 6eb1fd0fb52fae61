package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Reach tries the brokers one after the other until one answers, each for its share of Timeout. Its
// error has the remedy, or is the context's cause.
func (c *Cluster) Reach(ctx context.Context) error {
	var err error
	for _, broker := range c.Brokers {
		err = c.ask(ctx, broker)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
	reason := err.Error()
	if isType[*kgo.ErrFirstReadEOF](err) {
		reason = "it hung up at once" // the client's own text guesses what the hint knows
	}
	return fmt.Errorf("no broker can be used: tried %s: %s; %s", strings.Join(c.Brokers, ", "), reason, c.hint(err))
}

// ask uses a client of its own, whose context ends the wait for a broker that accepts the
// connection and never answers.
func (c *Cluster) ask(ctx context.Context, broker string) error {
	share := c.Timeout / time.Duration(len(c.Brokers))
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	cl, err := kgo.NewClient(append(c.Opts, kgo.SeedBrokers(broker), kgo.WithContext(ctx), kgo.DisableClientMetrics())...)
	if err != nil {
		return err
	}
	defer cl.Close()
	err = cl.Ping(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no answer came within %s", share.Round(time.Millisecond))
	}
	return err
}

// hint returns what to do about an error of the brokers or the network.
func (c *Cluster) hint(err error) string {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Sprintf("the broker refuses %s by %s: check %s", c.identity(), c.sasl, c.credentials())
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fmt.Sprintf("the broker does not offer %s: choose another --%s", c.sasl, mechanism)
	case errors.Is(err, kerr.IllegalSaslState):
		return fmt.Sprintf("this port does not authenticate clients: omit --%s, or use the port that does", mechanism)
	case isType[x509.UnknownAuthorityError](err), isType[*tls.CertificateVerificationError](err) && !isType[x509.HostnameError](err):
		return fmt.Sprintf("give the authority that signed its certificate by --%s", tlsCA)
	case isType[x509.HostnameError](err):
		return fmt.Sprintf("use the name that its certificate is for, or give it by --%s", tlsName)
	case isType[tls.RecordHeaderError](err):
		return fmt.Sprintf("this port does not speak TLS: use the other one, or omit --%s", useTLS)
	case refusedTLS(err):
		return fmt.Sprintf("the broker rejects our side of TLS: does it require a certificate (--%s, --%s)?", tlsCert, tlsKey)
	case isType[*kgo.ErrFirstReadEOF](err) && !c.tls:
		return fmt.Sprintf("this port may want TLS (--%s) or authentication (--%s)", useTLS, mechanism)
	case isType[*kgo.ErrFirstReadEOF](err):
		return fmt.Sprintf("this port may not speak TLS (--%s), or want authentication (--%s) or a certificate (--%s)", useTLS, mechanism, tlsCert)
	case errors.Is(err, io.EOF) && c.sasl != "":
		return fmt.Sprintf("it hung up on %s by %s: check %s, or omit --%s if that port does not authenticate clients", c.identity(), c.sasl, c.credentials(), mechanism)
	case errors.Is(err, syscall.ECONNREFUSED): // to wait longer would not help
		return fmt.Sprintf("check --%s, and whether a broker listens there", brokers)
	case isType[*net.DNSError](err):
		return fmt.Sprintf("check the host name in --%s or in the profile", brokers)
	}
	wants := fmt.Sprintf("wants TLS (--%s)", useTLS)
	if c.sasl != "" {
		wants += fmt.Sprintf(" and authentication (--%s)", mechanism)
	}
	return fmt.Sprintf("check --%s, the network, and whether that port %s; --%s waits longer", brokers, wants, timeout)
}

// refusedTLS reports whether the broker ended TLS by an alert. Package tls has no type for it.
func refusedTLS(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func (c *Cluster) identity() string {
	if c.user == "" {
		return "the token"
	}
	return "user " + c.user
}

// credentials is the options for the user and its secret.
func (c *Cluster) credentials() string {
	if c.sasl == saslOAuth {
		return fmt.Sprintf("--%s or %s", token+fileSuffix, Variable(token))
	}
	return fmt.Sprintf("--%s and its secret", user)
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
