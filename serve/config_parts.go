package serve

import (
	"crypto/tls"
	"errors"
	"log/slog"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/alert"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/yamlfile"
	"github.com/sidingkafka/siding/serve/payload"
)

// parts are what a configuration makes of itself and of the files that it names.
type parts struct {
	receivers []alert.Receiver // of notifications
	who       *access.Authenticator
	browser   *access.Browser                // of people who look at the console
	tls       *tls.Config                    // nil without a certificate
	rules     *yamlfile.Watched[[]rule.Rule] // nil without rules
	redact    *redact.Rules                  // nil if nothing is hidden
	codec     payload.Codec                  // nil without a schema registry
}

// parts makes them, and returns all that is wrong with the files.
func (c *Config) parts(log *slog.Logger) (p parts, err error) {
	for _, warning := range c.Warnings() {
		log.Warn("siding: the configuration has a risk", "warning", warning)
	}
	var errs [7]error
	p.receivers, errs[0] = newReceivers(c.Notify, log)
	p.who, errs[1] = c.authenticator(log)
	p.tls, errs[2] = c.TLS.config(log)
	if c.RulesFile != "" {
		p.rules, errs[3] = rule.Read(c.RulesFile, log)
	}
	p.redact, errs[4] = c.Redact.rules()
	if p.codec, err = codecOf(&c.Registry, c.OpenRegistry); err != nil {
		errs[6] = &KeyError{Key: "registry", Problem: err.Error()}
	}
	if errs[1] == nil {
		p.browser, errs[5] = c.browser(p.who)
	}
	return p, errors.Join(errs[:]...)
}
