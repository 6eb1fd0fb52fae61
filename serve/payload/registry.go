package payload

import (
	"errors"
	"net/url"
)

// Registry says where a schema registry is, and how it knows this program. Only the operator sets
// it: nothing in a record, and no answer of the registry, leads to another address.
type Registry struct {
	// URL is the address, http or https, below which it has /schemas/ids. A user and a password in
	// it count as Username and Password. Required.
	URL string
	// Username and Password are sent as basic authentication, and Token as a bearer token instead.
	// Default none.
	Username, Password, Token string
	// CAFile has the authorities that may sign the registry's certificate, in PEM form. Default
	// those of the system.
	CAFile string
	// CertFile and KeyFile are the certificate by which the registry knows this program, in PEM
	// form. They are read at each connection. Default none.
	CertFile, KeyFile string
}

// Parse returns the address, without a user and a password, and the registry with those set.
func (r Registry) Parse() (address string, whole Registry, err error) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return "", r, errors.New("the URL can't be read") // the error would quote a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", r, errors.New("the URL needs the form http://host:port or https://host:port")
	case u.RawQuery != "" || u.Fragment != "":
		return "", r, errors.New("the URL must not have a ? or a #")
	}
	if u.User != nil {
		if r.Username != "" || r.Password != "" {
			return "", r, errors.New("a user is given twice: in the URL and beside it")
		}
		r.Username = u.User.Username()
		r.Password, _ = u.User.Password()
		u.User = nil
	}
	switch {
	case r.Token != "" && r.Username != "":
		return "", r, errors.New("a user and a token are both given: choose one")
	case r.Password != "" && r.Username == "":
		return "", r, errors.New("a password is given without its user")
	case (r.CertFile == "") != (r.KeyFile == ""):
		return "", r, errors.New("a certificate and its key belong together")
	case u.Scheme == "http" && r.CAFile+r.CertFile != "":
		return "", r, errors.New("certificates are given, so the URL has to begin with https://")
	}
	return u.String(), r, nil
}
