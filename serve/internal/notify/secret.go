package notify

import (
	"errors"
	"net/url"
	"strings"
)

// hidden returns an error without addresses: those of receivers have secrets in them.
func hidden(err error, addresses ...string) error {
	text := err.Error()
	for e := err; e != nil; {
		var failed *url.Error
		if !errors.As(e, &failed) {
			break
		}
		addresses = append(addresses, failed.URL)
		e = failed.Err
	}
	for _, a := range addresses {
		text = strings.ReplaceAll(text, a, "…")
	}
	return errors.New(text)
}

// logsIn reports whether the library connects to a receiver before there is a message for it.
func logsIn(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "matrix" && u.User.Username() != ""
}
