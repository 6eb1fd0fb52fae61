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
