package connect

import (
	"context"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/payload"
)

const (
	defaultClientID = "siding-redrive"
	defaultTimeout  = 10 * time.Second
)

// An Environment is the variables and the configuration folder of a process.
type Environment struct {
	// Getenv is os.Getenv, or a test's.
	Getenv func(string) string
	// Folder is the user's folder for configuration; empty where there is none.
	Folder string
	// Dial reaches brokers without TLS. Nil is the system's network; a test may have its own.
	Dial func(ctx context.Context, network, host string) (net.Conn, error)
}

// Cluster is how to reach a cluster and how siding's topics are named there.
type Cluster struct {
	// Brokers are the addresses to begin with.
	Brokers []string
	// Naming has the templates of siding's topics.
	Naming retrytopics.Naming
	// Timeout is how long to wait for a broker that answers. Default 10 s.
	Timeout time.Duration
	// Redact is what is hidden of letters; nil hides nothing.
	Redact *redact.Rules
	// RedactTexts are the texts of these rules, for a server.
	RedactTexts RedactTexts
	// Registry is the schema registry; without a URL there is none.
	Registry payload.Registry
	// Warnings are what the user ought to know before going on.
	Warnings []string

	// Opts are the client options that reach the cluster. Appending to them copies them.
	Opts []kgo.Opt

	tls  bool
	sasl string // the mechanism, or nothing
	user string
}

// RedactTexts are the texts of rules, in words of the flags.
type RedactTexts struct{ Paths, Headers, Patterns []string }
