package payload

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Registry says where a schema registry is, and how it knows this program. Only the operator sets
// it: nothing in a record, and no answer of the registry, leads to another address.
type Registry struct {
	// URL is the address, http or https, below which it has /schemas/ids. It has no user and no
	// password, since it is no secret. Default none: no key and no value is decoded.
	URL string `yaml:"url"`
	// Username is sent with a password as basic authentication. Default none.
	Username string `yaml:"user"`
	// Password is the user's password itself.
	Password string `yaml:"-"`
	// PasswordEnv is the variable of the environment with the password. Default none.
	PasswordEnv string `yaml:"password-env"`
	// PasswordFile is a file with the password. It is read at each request. Default none.
	PasswordFile string `yaml:"password-file"`
	// Token is a bearer token itself.
	Token string `yaml:"-"`
	// TokenEnv is the variable of the environment with a bearer token, in place of a user. Default
	// none.
	TokenEnv string `yaml:"token-env"`
	// TokenFile is a file with the token. It is read at each request. Default none.
	TokenFile string `yaml:"token-file"`
	// CAFile has the authorities that may sign the registry's certificate, in PEM form. Default
	// those of the system.
	CAFile string `yaml:"ca-file"`
	// CertFile is the certificate by which the registry knows this program, in PEM form. It is read
	// at each connection, as its key is. Default none.
	CertFile string `yaml:"cert-file"`
	// KeyFile is the key of the certificate. Default none.
	KeyFile string `yaml:"key-file"`
}

// Check returns what is wrong with the settings. It reads no file.
func (r *Registry) Check() error {
	if r.URL == "" {
		if *r != (Registry{}) {
			return errors.New("the URL is missing")
		}
		return nil
	}
	u, err := url.Parse(r.URL)
	passwords, tokens := given(r.Password, r.PasswordEnv, r.PasswordFile), given(r.Token, r.TokenEnv, r.TokenFile)
	switch {
	case err != nil:
		return errors.New("the URL can't be read") // the error would quote a password
	case u.User != nil:
		return errors.New("the URL must not have a user or a password: give them apart from it")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the URL needs the form http://host:port or https://host:port")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL must not have a ? or a #")
	case tokens > 0 && r.Username != "":
		return errors.New("a user and a token are both given: choose one")
	case passwords > 0 && r.Username == "":
		return errors.New("a password is given without its user")
	case passwords > 1 || tokens > 1:
		return errors.New("a secret is given in two ways: choose one")
	case (r.CertFile == "") != (r.KeyFile == ""):
		return errors.New("a certificate and its key belong together")
	case u.Scheme == "http" && r.CAFile+r.CertFile != "":
		return errors.New("certificates are given, so the URL has to begin with https://")
	}
	return nil
}

func given(texts ...string) (n int) {
	for _, t := range texts {
		if t != "" {
			n++
		}
	}
	return n
}

// Secret is the password or the token of now; empty without one.
func (r *Registry) Secret() (string, error) {
	for _, way := range []struct{ text, variable, file string }{
		{r.Password, r.PasswordEnv, r.PasswordFile}, {r.Token, r.TokenEnv, r.TokenFile},
	} {
		switch {
		case way.text != "":
			return way.text, nil
		case way.variable != "":
			text := os.Getenv(way.variable)
			if text == "" { // its name may be the secret itself
				return "", errors.New("the variable with the registry's secret is not set")
			}
			return text, nil
		case way.file != "":
			text, err := os.ReadFile(way.file)
			text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
			if err == nil && len(text) == 0 {
				err = fmt.Errorf("%s is empty", way.file)
			}
			return string(text), err
		}
	}
	return "", nil
}

// Unencrypted reports whether requests have a secret that the network sees.
func (r *Registry) Unencrypted() bool {
	return r.Sends() && strings.HasPrefix(r.URL, "http://")
}

// Sends reports whether requests have a secret.
func (r *Registry) Sends() bool {
	return r.Username != "" || given(r.Token, r.TokenEnv, r.TokenFile) > 0
}
