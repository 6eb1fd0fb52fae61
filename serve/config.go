package serve

import (
	"errors"
	"fmt"
	"net"
	"path"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/incident"
)

// Config configures a server. The file of redrive serve has the fields with a yaml tag.
type Config struct {
	// Kafka are the options of all clients: brokers, TLS, SASL and the like.
	Kafka []kgo.Opt `yaml:"-" json:"-"`
	// Naming holds the templates of the siblings' names; the zero value is the library's default.
	Naming retrytopics.Naming `yaml:"-" json:"-"`

	// Listen is the address of the HTTP server, host:port. Without Access, the host must be a
	// loopback address. Default 127.0.0.1:8642.
	Listen string `yaml:"listen"`
	// URL is the address under which people reach the server, for links in notifications. Default
	// the address of Listen.
	URL string `yaml:"url"`
	// Group is the consumer group by which servers share the topics. Servers with the same Group
	// work together. Default siding-serve.
	Group string `yaml:"group"`
	// Refresh is how often the brokers are asked for new letters. Default 2 s, at least 500 ms.
	Refresh time.Duration `yaml:"refresh"`
	// Topics say what a dead-letter topic means to its team. The first one that matches counts.
	Topics []Topic `yaml:"topics"`
	// MaxClasses bounds the classes of a topic that have metrics of their own. The letters of
	// further classes are counted as class "other". Default 50.
	MaxClasses int `yaml:"max-classes"`
	// Redact hides parts of letters from everybody.
	Redact Redact `yaml:"redact"`
	// RulesFile has rules that redrive letters by themselves. It is read again when it changes.
	RulesFile string `yaml:"rules-file"`
	// Access says who may use the server. Without it the server listens on a loopback address only,
	// and whoever uses this machine may do all.
	Access Access `yaml:"access"`
	// TLS makes the server speak HTTPS.
	TLS TLS `yaml:"tls"`
	// Notify are the receivers of notifications, for teams without an Alertmanager.
	Notify []Receiver `yaml:"notify"`
}

// Redact says what is hidden before it leaves the server, in words of the program's flags: paths in
// JSON values, names of headers, and regular expressions.
type Redact struct {
	Paths    []string `yaml:"paths"`
	Headers  []string `yaml:"headers"`
	Patterns []string `yaml:"patterns"`
}

func (r *Redact) rules() (*redact.Rules, error) {
	texts := func(key string, all []string) (named []redact.Text) {
		for i, t := range all {
			named = append(named, redact.Text{Text: t, From: fmt.Sprintf("redact.%s[%d]", key, i)})
		}
		return named
	}
	return redact.Parse(texts("paths", r.Paths), texts("headers", r.Headers), texts("patterns", r.Patterns))
}

// Access says who may use the server. Several ways may be configured; the first that knows the
// sender counts: proxy, tokens, OIDC.
type Access struct {
	// TokensFile has bearer tokens, hashed. It is read again when it changes.
	TokensFile string        `yaml:"tokens-file"`
	Proxy      *access.Proxy `yaml:"proxy"`
	OIDC       *access.OIDC  `yaml:"oidc"`
	// OpenMetrics lets everybody read /metrics; otherwise viewers may.
	OpenMetrics bool `yaml:"open-metrics"`
}

func (a *Access) isOpen() bool { return a.TokensFile == "" && a.Proxy == nil && a.OIDC == nil }

// TLS are the files of a certificate. Both or none are set. They are read again when they change.
type TLS struct {
	CertFile string `yaml:"cert-file"`
	KeyFile  string `yaml:"key-file"`
}

// Receiver gets notifications: when an incident begins, and when it is over.
type Receiver struct {
	// Name stands for the receiver in the log.
	Name string `yaml:"name"`
	// URLEnv names the variable of the environment, and URLFile the file, with the receiver's URL in
	// the form of https://shoutrrr.nickfedor.com, as in slack://… and smtp://…. One of them is
	// required: a URL has secrets, so it does not belong into this file.
	URLEnv  string `yaml:"url-env"`
	URLFile string `yaml:"url-file"`
	// Topics is a pattern of dead-letter topics' names. Default all.
	Topics string `yaml:"topics"`
	// Severity is the lowest that the receiver gets: warn or page. Default warn.
	Severity Severity `yaml:"severity"`
}

// Severity is how urgent an alert is: warn or page.
type Severity = incident.Severity

// Topic says what dead-letter topics mean to their team.
type Topic struct {
	// Match is a pattern of dead-letter topics' names: * is any text, ? any character, [abc] one of
	// these.
	Match string `yaml:"match"`
	// Criticality sets the defaults of Alerts: critical, high, normal, low or minor. Default normal.
	Criticality Criticality `yaml:"criticality"`
	// ManualOnly keeps rules from redriving the topic: only operators do.
	ManualOnly bool `yaml:"manual-only"`
	// Alerts override single thresholds of the criticality.
	Alerts Thresholds `yaml:"alerts"`
}

// withDefaults returns the configuration with defaults in place of zero fields.
func (c Config) withDefaults() Config {
	orText := func(s *string, by string) {
		if *s == "" {
			*s = by
		}
	}
	orText(&c.Listen, "127.0.0.1:8642")
	orText(&c.URL, "http://"+c.Listen)
	orText(&c.Group, "siding-serve")
	if c.Refresh == 0 {
		c.Refresh = 2 * time.Second
	}
	if c.MaxClasses == 0 {
		c.MaxClasses = 50
	}
	return c
}

// check returns all that is wrong with a configuration.
func (c *Config) check() error {
	var all []error
	wrong := func(key, format string, args ...any) {
		all = append(all, &KeyError{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	host, _, err := net.SplitHostPort(c.Listen)
	switch ip := net.ParseIP(host); {
	case err != nil:
		wrong("listen", "%q is not host:port, as in 127.0.0.1:8642", c.Listen)
	case c.Access.isOpen() && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		wrong("listen", "%q is not a loopback address: without access control the server listens on 127.0.0.1 or [::1] only", c.Listen)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		wrong("tls.cert-file", "cert-file and key-file are set both, or none")
	}
	if c.Refresh < 500*time.Millisecond {
		wrong("refresh", "%v: at least 500ms", c.Refresh)
	}
	if c.MaxClasses < 1 {
		wrong("max-classes", "%d: at least 1", c.MaxClasses)
	}
	if err := c.Naming.Validate(); err != nil {
		all = append(all, err)
	}
	for i, r := range c.Notify {
		at := fmt.Sprintf("notify[%d].", i)
		if r.Name == "" {
			wrong(at+"name", "required: it stands for the receiver in the log")
		}
		if (r.URLEnv == "") == (r.URLFile == "") {
			wrong(at+"url-env", "either this or url-file is required")
		}
		if _, err := path.Match(r.Topics, ""); err != nil {
			wrong(at+"topics", "%q is not a pattern: * is any text, ? any character, [abc] one of these", r.Topics)
		}
		if r.Severity != "" && r.Severity != incident.Warn && r.Severity != incident.Page {
			wrong(at+"severity", "%q: warn or page", r.Severity)
		}
	}
	for i, t := range c.Topics {
		at := fmt.Sprintf("topics[%d].", i)
		if _, err := path.Match(t.Match, ""); t.Match == "" || err != nil {
			wrong(at+"match", "%q is not a pattern: * is any text, ? any character, [abc] one of these", t.Match)
		}
		if _, ok := criticalities[t.criticality()]; !ok {
			wrong(at+"criticality", "%q: critical, high, normal, low or minor", t.Criticality)
		}
		t.Alerts.check(func(key, format string, args ...any) { wrong(at+"alerts."+key, format, args...) })
	}
	return errors.Join(all...)
}

// KeyError reports a key of the configuration whose value is not allowed.
type KeyError struct {
	// Key is the path of the key in the file, as in topics[0].match.
	Key string
	// Problem has the value, and what is allowed.
	Problem string
}

// Error names the key and the problem.
func (e *KeyError) Error() string { return e.Key + ": " + e.Problem }

// topicConfig returns what the configuration says of a dead-letter topic.
func (c *Config) topicConfig(name string) Topic {
	for _, t := range c.Topics {
		if ok, _ := path.Match(t.Match, name); ok {
			return t
		}
	}
	return Topic{Match: "*"}
}
