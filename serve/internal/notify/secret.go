package notify

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// mark stands where something was hidden.
const mark = "…"

// addresses fits whatever looks like a URL. Some services quote the one that they send to, which
// they made of parts of the receiver's.
var addresses = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// hidden returns an error without the address of a receiver and the parts of it: they are secrets.
// It hides any URL, too.
func hidden(err error, address string) error {
	text := err.Error()
	all := append(secrets(address), address)
	for e := err; e != nil; {
		var failed *url.Error
		if !errors.As(e, &failed) {
			break
		}
		all = append(all, failed.URL)
		e = failed.Err
	}
	var forms []string
	for _, s := range all {
		if s != "" {
			forms = append(forms, s, strings.Trim(strconv.Quote(s), `"`), url.PathEscape(s), url.QueryEscape(s))
		}
	}
	// The longest one first: another may be the beginning of it.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for i := range forms {
		forms[i] = regexp.QuoteMeta(forms[i])
	}
	text = addresses.ReplaceAllLiteralString(text, mark)
	if len(forms) > 0 {
		text = regexp.MustCompile("(?i)"+strings.Join(forms, "|")).ReplaceAllLiteralString(text, mark)
	}
	return errors.New(text)
}

const (
	// leastPart is how long a part of an address has to be to count as a secret, and leastPiece how
	// long a piece of such a part: without these limits, errors would lose their words.
	leastPart, leastPiece = 4, 8
)

// words are parts of addresses that are no secrets, and that errors may have.
var words = []string{"hook", "webhook", "json", "true", "false", "auto", "none", "post", "plain"}

// secrets returns the parts of a receiver's address that may be secrets, and long pieces of them:
// services put these together anew.
func secrets(address string) (all []string) {
	u, err := url.Parse(address)
	if err != nil {
		all = strings.FieldsFunc(address, func(r rune) bool { return strings.ContainsRune("/:@?&=#", r) })
	} else {
		password, _ := u.User.Password()
		all = append([]string{u.User.Username(), password, u.Fragment}, strings.Split(u.Path, "/")...)
		for name, values := range u.Query() {
			if name != "host" {
				all = append(all, values...)
			}
		}
		// The host of some services is a token. One with a dot, or a port, is a machine.
		if host := u.Host; !strings.ContainsAny(host, ".:") && host != "localhost" {
			all = append(all, host)
		}
	}
	for _, part := range all {
		for _, piece := range strings.FieldsFunc(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(piece) >= leastPiece {
				all = append(all, piece)
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < leastPart || slices.Contains(words, strings.ToLower(s)) })
}
