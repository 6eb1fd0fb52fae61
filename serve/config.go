package serve

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/watch"
	"github.com/sidingkafka/siding/serve/payload"
)

// Config configures a server. The file of redrive serve has the fields with a yaml tag.
type Config struct {
	// Kafka are the options of all clients: brokers, TLS, SASL and the like.
	Kafka []kgo.Opt `yaml:"-" json:"-"`
	// Naming holds the templates of the siblings' names; the zero value is the library's default.
	Naming retrytopics.Naming `yaml:"-" json:"-"`

	// OpenID opens the provider of Access.OIDC: oidc.Open of package serve/oidc. Required with it;
	// who sets none does not link that package. Default none.
	OpenID func(*OIDC) Provider `yaml:"-" json:"-"`

	// OpenRegistry opens the schema registry of Registry: registry.Open of package serve/registry.
	// Required with it; who sets none does not link what reads schemas. Default none.
	OpenRegistry func(payload.Registry) (payload.Codec, error) `yaml:"-" json:"-"`

	// MetricReaders are readers of OpenTelemetry's SDK, besides /metrics: one that sends to a
	// collector, say. Whoever made a reader ends it. Default none.
	MetricReaders []sdkmetric.Reader `yaml:"-" json:"-"`

	// Listen is the address of the HTTP server, host:port. Without access control the host must be
	// a loopback address. Default 127.0.0.1:8642.
	Listen string `yaml:"listen"`
	// URL is the address under which people reach the server, for links in notifications. Default
	// that of listen.
	URL string `yaml:"url"`
	// Group is the consumer group by which servers share the topics. Servers of one group work
	// together. Default siding-serve.
	Group string `yaml:"group"`
	// Refresh is how often the brokers are asked for new letters, at least 500ms. Default 2s.
	Refresh time.Duration `yaml:"refresh"`
	// Topics is what dead-letter topics mean to their teams. The first entry that matches a topic
	// counts. A topic that none matches has the defaults.
	Topics []Topic `yaml:"topics"`
	// MaxClasses bounds the classes of a topic that have metrics of their own. The letters of
	// further classes are counted as class _OTHER. Default 50.
	MaxClasses int `yaml:"max-classes"`
	// Redact hides parts of letters from everybody.
	Redact Redact `yaml:"redact"`
	// Registry is a schema registry with Confluent's API, by which keys and values are decoded.
	// Default none.
	Registry payload.Registry `yaml:"registry"`
	// RulesFile is a file of rules that redrive letters by themselves. It is read again when it
	// changes. Default none.
	RulesFile string `yaml:"rules-file"`
	// S3 is the storage of archives of the form s3://bucket/folder. Default Amazon S3.
	S3 archive.S3 `yaml:"s3"`
	// Access is who may use the server. Without it the server listens on a loopback address only,
	// and whoever uses this machine may do all.
	Access Access `yaml:"access"`
	// TLS makes the server speak HTTPS. Default HTTP.
	TLS TLS `yaml:"tls"`
	// Notify are the receivers of notifications, for teams without an Alertmanager.
	Notify []Receiver `yaml:"notify"`
}

// Redact says what is hidden before it leaves the server, in words of the program's flags: paths in
// JSON values, names of headers, and regular expressions.
type Redact struct {
	// Paths are paths of JSON keys in values, keys and headers, as in customer.card, items[*].iban
	// or ..card. Default none.
	Paths []string `yaml:"paths"`
	// Headers are names of headers. Default none.
	Headers []string `yaml:"headers"`
	// Patterns are regular expressions of Go's package regexp: what they fit is hidden in values,
	// keys, headers and messages. Default none.
	Patterns []string `yaml:"patterns"`
}

func (r *Redact) rules() (*redact.Rules, error) {
	texts := func(key string, all []string) (named []redact.Text) {
		for i, t := range all {
			named = append(named, redact.Text{Text: t, From: fmt.Sprintf("redact.%s[%d]", key, i)})
		}
		return named
	}
	rules, err := redact.Parse(texts("paths", r.Paths), texts("headers", r.Headers), texts("patterns", r.Patterns))
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			key, problem, _ := strings.Cut(e.Error(), ": ")
			all = append(all, &KeyError{Key: key, Problem: problem})
		}
		err = errors.Join(all...)
	}
	return rules, err
}

// Access says who may use the server. Several ways may be configured; the first that knows the
// sender counts: proxy, tokens, OIDC.
type Access struct {
	// TokensFile is a file of bearer tokens, hashed. It is read again when it changes. Default
	// none.
	TokensFile string `yaml:"tokens-file"`
	// Proxy is a proxy that authenticates people, and names them in a header. Default none.
	Proxy *Proxy `yaml:"proxy"`
	// OIDC is an OpenID provider whose tokens the server accepts. Default none.
	OIDC *OIDC `yaml:"oidc"`
	// SessionKeyFile is a file with the key that encrypts the cookies of people who signed in to
	// the console: 32 random bytes or more. Servers with the same key share their sessions. Without
	// one, the end of a server signs its people out. Default none.
	SessionKeyFile string `yaml:"session-key-file"`
	// OpenMetrics lets everybody read /metrics; otherwise viewers may. Default false.
	OpenMetrics bool `yaml:"open-metrics"`
}

func (a *Access) isOpen() bool { return a.TokensFile == "" && a.Proxy == nil && a.OIDC == nil }

// TLS are the files of a certificate. Both or none are set. They are read again when they change.
type TLS struct {
	// CertFile is a PEM file of the certificate, with those that lead to its authority. Default
	// none.
	CertFile string `yaml:"cert-file"`
	// KeyFile is a PEM file of its key. Default none.
	KeyFile string `yaml:"key-file"`
}

// Receiver gets notifications: when an incident begins, and when it is over.
type Receiver struct {
	// Name stands for the receiver in the log, and in the ledgers' notes of who was told. Required.
	Name string `yaml:"name"`
	// URLEnv is the variable of the environment with the receiver's URL in the form of
	// https://shoutrrr.nickfedor.com, as in slack://… and smtp://…. Either this or url-file is
	// required: a URL has secrets, so it does not belong into this file.
	URLEnv string `yaml:"url-env"`
	// URLFile is a file with the receiver's URL, instead of a variable.
	URLFile string `yaml:"url-file"`
	// Topics is a pattern of dead-letter topics' names. Default *.
	Topics string `yaml:"topics"`
	// Severity is the lowest that the receiver gets: warn or page. Default warn.
	Severity Severity `yaml:"severity"`
}

// Severity is how urgent an alert is: warn or page.
type Severity = incident.Severity

// withDefaults returns the configuration with defaults in place of zero fields.
func (c Config) withDefaults() Config {
	orText := func(s *string, by string) {
		if *s == "" {
			*s = by
		}
	}
	orText(&c.Listen, "127.0.0.1:8642")
	orText(&c.URL, c.ownURL())
	orText(&c.Group, watch.DefaultGroup)
	if c.Refresh == 0 {
		c.Refresh = 2 * time.Second
	}
	if c.MaxClasses == 0 {
		c.MaxClasses = 50
	}
	return c
}

// ownURL is the address of the server on this machine.
func (c *Config) ownURL() string {
	if c.TLS.CertFile != "" {
		return "https://" + c.Listen
	}
	return "http://" + c.Listen
}

// isAddress reports whether a text is the URL of a site.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// check returns all that is wrong with a configuration.
func (c *Config) check() error {
	var all []error
	wrong := func(key, format string, args ...any) {
		all = append(all, &KeyError{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	host, port, err := net.SplitHostPort(c.Listen)
	_, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || portErr != nil:
		wrong("listen", "%q is not host:port, as in 127.0.0.1:8642", c.Listen)
	case c.Access.isOpen() && !isLoopback(host):
		wrong("listen", "%q is not a loopback address: without access control the server listens on 127.0.0.1 or [::1] only", c.Listen)
	}
	if listens := len(all) == 0; !isAddress(c.URL) && (listens || c.URL != c.ownURL()) {
		wrong("url", "%q is not an address, as in https://siding.example.com", c.URL)
	}
	switch {
	case c.TLS.CertFile == "" && c.TLS.KeyFile != "":
		wrong("tls.cert-file", "required beside key-file")
	case c.TLS.CertFile != "" && c.TLS.KeyFile == "":
		wrong("tls.key-file", "required beside cert-file")
	}
	if c.Refresh < 500*time.Millisecond {
		wrong("refresh", "%v: at least 500ms", c.Refresh)
	}
	if u, err := url.Parse(c.S3.Endpoint); c.S3.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		wrong("s3.endpoint", "%q is not a URL, as in https://minio.example.com:9000", c.S3.Endpoint)
	}
	if c.MaxClasses < 1 {
		wrong("max-classes", "%d: at least 1", c.MaxClasses)
	}
	if err := c.Naming.Validate(); err != nil {
		all = append(all, err)
	}
	names := map[string]bool{}
	for i, r := range c.Notify {
		at := fmt.Sprintf("notify[%d].", i)
		switch {
		case r.Name == "":
			wrong(at+"name", "required: it stands for the receiver in the log and in ledgers")
		case names[r.Name]:
			wrong(at+"name", "%q: another receiver has this name", r.Name)
		}
		names[r.Name] = true
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
		checkTexts(&t, func(key, format string, args ...any) { wrong(at+key, format, args...) })
		t.Alerts.check(func(key, format string, args ...any) { wrong(at+"alerts."+key, format, args...) })
		if t.Retention != nil {
			t.Retention.check(c.S3, func(key, format string, args ...any) { wrong(at+"retention."+key, format, args...) })
		}
	}
	return errors.Join(all...)
}

// topicConfig returns what the configuration says of a dead-letter topic.
func (c *Config) topicConfig(name string) Topic {
	for _, t := range c.Topics {
		if ok, _ := path.Match(t.Match, name); ok {
			return t
		}
	}
	return Topic{Match: "*"}
}
