package connect

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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

// truth reads a setting that is yes or no.
func (r *resolver) truth(name string) (v value, yes bool) {
	v = r.get(name)
	yes, err := v.truth()
	if err != nil {
		r.errs = append(r.errs, err)
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
