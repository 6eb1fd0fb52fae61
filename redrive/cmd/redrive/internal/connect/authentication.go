package connect

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	saslPlain    = "PLAIN"
	saslSCRAM256 = "SCRAM-SHA-256"
	saslSCRAM512 = "SCRAM-SHA-512"
	saslOAuth    = "OAUTHBEARER"
	saslNone     = "NONE"
)

// Mechanisms are the ways to authenticate, for help and completion.
var Mechanisms = []string{saslPlain, saslSCRAM256, saslSCRAM512, saslOAuth}

// authentication decides on SASL, by the same rule of layers as transport.
func (r *resolver) authentication() {
	how := r.get(mechanism)
	name := strings.ToUpper(how.text)
	who := r.get(user)
	pass, passErr := r.secret(password)
	tok, tokErr := r.secret(token)

	// needs is what the mechanism takes: user, password, token.
	var needs [3]bool
	switch name {
	case saslPlain, saslSCRAM256, saslSCRAM512:
		needs = [3]bool{true, true, false}
	case saslOAuth:
		needs = [3]bool{false, false, true}
	case saslNone, "":
	default:
		r.problem("%s: %q is not a known mechanism: choose %s, or none", how.from, how.text, strings.Join(Mechanisms, ", "))
		return
	}
	for i, part := range []struct {
		given bool
		err   error
		from  string
		rank  int
		how   string // to give it
	}{
		{who.given(), nil, who.from, who.rank, "--" + user},
		{pass.given(), passErr, pass.from, pass.rank, "--" + password + fileSuffix + " or " + Variable(password)},
		{tok.given(), tokErr, tok.from, tok.rank, "--" + token + fileSuffix + " or " + Variable(token)},
	} {
		switch {
		case part.err != nil && (needs[i] || !how.given()):
			r.errs = append(r.errs, part.err)
		case needs[i] && !part.given:
			r.problem("%s: %s needs %s", how.from, name, part.how)
		case part.given && !how.given():
			r.problem("%s is given without a mechanism: give --%s too (%s)", part.from, mechanism, strings.Join(Mechanisms, ", "))
		case part.given && !needs[i] && part.rank <= how.rank:
			r.problem("%s is given, and %s (%s) does not take it: omit one", part.from, name, how.from)
		}
	}
	if !slices.Contains(Mechanisms, name) {
		return
	}
	secret := pass
	if name == saslOAuth {
		secret = tok
	}
	if secret.given() {
		if _, err := secret.reveal(); err != nil {
			r.errs = append(r.errs, err)
		}
	}
	r.cluster.sasl, r.cluster.user = name, who.text
	if !r.cluster.tls && (name == saslPlain || name == saslOAuth) {
		r.warn("%s without TLS sends the secret over the network unencrypted; give --%s", name, useTLS)
	}
	r.option(kgo.SASL(mechanismOf(name, who.text, secret)))
}

// mechanismOf reads the secret for each connection anew, since files of secrets are replaced.
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
