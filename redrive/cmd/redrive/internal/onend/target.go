package onend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// Patience is how long a call may take.
const Patience = 30 * time.Second

// A Target is a command of the shell, or a URL. The zero Target is none.
type Target struct {
	command string
	url     *url.URL
}

// A Call is what a target is told.
type Call struct {
	// Body is the report, as JSON.
	Body []byte
	// Env are variables for a command, as NAME=value.
	Env []string
	// Secrets are names of variables that a command does not inherit.
	Secrets []string
	// Words is where a command's output goes.
	Words io.Writer
}

// likeURL matches texts that are meant as a URL, and that the shell would run as a command.
var likeURL = regexp.MustCompile(`^(?i:\s+https?:|https?:(/?[^/]|/?$))`)

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// Parse reads the value of the flag. It fails where the call could not succeed at all.
func Parse(text string) (Target, error) {
	if meant := likeURL.FindString(text); meant != "" {
		return Target{}, fmt.Errorf("%q begins no URL, which is http://HOST/PATH without blanks around it", meant)
	}
	if !scheme.MatchString(text) {
		if _, err := exec.LookPath(shell); err != nil {
			return Target{}, fmt.Errorf("a command needs the shell %s, which is not there: give a URL", shell)
		}
		return Target{command: text}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // its text has the whole URL, perhaps with a secret
		return Target{}, errors.New("this is no URL that can be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return Target{}, fmt.Errorf("a URL begins with http:// or https://, not with %s://", u.Scheme)
	case u.Hostname() == "":
		return Target{}, errors.New("the URL has no host")
	case !usablePort(u.Port()):
		return Target{}, fmt.Errorf("the URL's port is %s: a port is from 1 to 65535", u.Port())
	case u.User != nil:
		return Target{}, errors.New("a secret must not be a flag's value, which all users of the machine can read: give a command that reads it, such as 'curl --netrc --json @- URL'")
	}
	return Target{url: u}, nil
}

// usablePort reports whether a URL's port is one. A URL may have none.
func usablePort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// IsZero reports whether there is nothing to call.
func (t Target) IsZero() bool { return t.command == "" && t.url == nil }

// String names the target. It omits the path of a URL, which may be a secret.
func (t Target) String() string {
	if t.url != nil {
		return t.url.Scheme + "://" + t.url.Host
	}
	return "the command"
}

// Call tells the target, within [Patience]. It ends early when ctx ends.
func (t Target) Call(ctx context.Context, c Call) error { return t.call(ctx, c, Patience) }

func (t Target) call(ctx context.Context, c Call, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took more than %v, and was given up", patience))
	defer cancel()
	do := t.run
	if t.url != nil {
		do = t.post
	}
	err := do(ctx, c)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
