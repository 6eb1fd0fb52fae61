package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/teams"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// locate returns the service of a URL. The library panics at some URLs that it cannot read.
func locate(address string) (s types.Service, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the URL cannot be read")
		}
	}()
	// The library would log in before there is a message.
	if scheme, _, _ := strings.Cut(address, ":"); scheme == "matrix" {
		return nil, errUnbounded
	}
	var r router.ServiceRouter
	return r.Locate(address)
}

var errUnbounded = errors.New("the library takes no client for this kind, so its requests would have no bounds: use Slack, Teams, Discord, Mattermost, Rocket.Chat, PagerDuty, Pushover, ntfy, Gotify, e-mail, or a webhook (generic)")

// sender returns how a service sends a message over a client of siding's own: the library's own
// ones follow redirects and read answers without an end.
func sender(to types.Service, address string) (send func(x *exchange, m *Message) error, err error) {
	over := func(use func(*http.Client)) func(*exchange, *Message) error {
		return func(x *exchange, m *Message) error {
			use(&http.Client{Transport: x})
			text, params := m.words(to)
			return to.Send(text, &params)
		}
	}
	// of a service with TLS of its own
	within := func(own *http.Client) func(*exchange, *Message) error {
		base := own.Transport
		send := over(func(c *http.Client) { *own = *c })
		return func(x *exchange, m *Message) error {
			defer (&http.Client{Transport: base}).CloseIdleConnections()
			x.base = base
			return send(x, m)
		}
	}
	switch s := to.(type) {
	case *pagerduty.Service:
		return over(s.SetHTTPClient), nil
	case *ntfy.Service:
		if s.Config.DisableTLSVerification {
			return nil, errors.New("disabletlsverification: the certificate is always checked")
		}
		return over(s.SetHTTPClient), nil
	case *discord.Service:
		s.Sleeper = noSleep{}
		return over(func(c *http.Client) { s.HTTPClient = c }), nil
	case *rocketchat.Service:
		return over(func(c *http.Client) { s.Client = c }), nil
	case *pushover.Service:
		return over(func(c *http.Client) { s.Client = c }), nil
	case *mattermost.Service:
		return within(s.GetHTTPClient()), nil
	case *gotify.Service:
		return within(s.GetHTTPClient()), nil
	case *smtp.Service:
		return func(x *exchange, m *Message) error { return sendMail(x, s.Config, m) }, nil
	case *slack.Service:
		return func(x *exchange, m *Message) error { return toSlack(x, s.Config, m) }, nil
	case *teams.Service:
		return func(x *exchange, m *Message) error { return toTeams(x, s.Config, m) }, nil
	case *generic.Service:
		return func(x *exchange, m *Message) error { return toWebhook(x, s, headers(address), m) }, nil
	}
	return nil, errUnbounded
}

// noSleep stands for the pauses of a service that tries again by itself: an [exchange] fails all
// further requests anyway.
type noSleep struct{}

// Sleep implements discord.Sleeper.
func (noSleep) Sleep(time.Duration) {}

func toSlack(x *exchange, cfg *slack.Config, m *Message) error {
	cfg.Title = m.Title
	text, err := json.Marshal(slack.CreateJSONPayload(cfg, m.rest()))
	if err != nil {
		return err
	}
	if !cfg.Token.IsAPIToken() {
		answer, err := post(x, http.MethodPost, cfg.Token.WebhookURL(), text, nil)
		if said := strings.TrimSpace(string(answer)); err == nil && said != "" && said != "ok" {
			return fmt.Errorf("%w: %q", errRefused, said[:min(len(said), mostQuoted)])
		}
		return err
	}
	answer, err := post(x, http.MethodPost, "https://slack.com/api/chat.postMessage", text, http.Header{"Authorization": {cfg.Token.Authorization()}})
	if err != nil {
		return err
	}
	var said slack.APIResponse
	if err := json.Unmarshal(answer, &said); err != nil || !said.Ok {
		return fmt.Errorf("%w: %q", errRefused, said.Error)
	}
	return nil
}

func toTeams(x *exchange, cfg *teams.Config, m *Message) error {
	type section struct {
		Text string `json:"text"`
	}
	var sections []section
	for line := range strings.SplitSeq(m.rest(), "\n") {
		sections = append(sections, section{line})
	}
	card := map[string]any{"@type": "MessageCard", "@context": "http://schema.org/extensions", "markdown": true, "title": m.Title, "summary": m.Title, "sections": sections}
	if cfg.Color != "" {
		card["themeColor"] = cfg.Color
	}
	text, err := json.Marshal(card)
	if err != nil {
		return err
	}
	to := teams.BuildWebhookURL(cfg.Host, cfg.Group, cfg.Tenant, cfg.AltID, cfg.GroupOwner, cfg.ExtraID)
	if err := teams.ValidateWebhookURL(to); err != nil {
		return err
	}
	_, err = post(x, http.MethodPost, to, text, nil)
	return err
}

func toWebhook(x *exchange, s *generic.Service, more http.Header, m *Message) error {
	text, params := m.words(s)
	title := params[types.TitleKey]
	delete(params, types.TitleKey)
	params[s.Config.TitleKey], params[s.Config.MessageKey] = title, text
	payload, err := s.GetPayload(s.Config, params)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(payload)
	if err != nil {
		return err
	}
	kind := s.Config.ContentType
	if s.Config.Template == "" {
		kind = "text/plain"
	}
	h := http.Header{"Content-Type": {kind}, "Accept": {kind}}
	for name := range more {
		h.Set(name, more.Get(name))
	}
	_, err = post(x, s.Config.RequestMethod, s.Config.WebhookURL().String(), body, h)
	return err
}

// headers returns the headers that the URL of a webhook asks for, as in ?@ApiKey=secret.
func headers(address string) http.Header {
	all := http.Header{}
	u, err := url.Parse(address)
	if err != nil {
		return all
	}
	for key, values := range u.Query() {
		if name, is := strings.CutPrefix(key, string(generic.HeaderPrefixChar)); is && name != "" {
			all.Set(dashed(name), values[0])
		}
	}
	return all
}

// dashed separates the words of a header's name, as the library reads it: ApiKey is Api-Key.
func dashed(name string) string {
	var b strings.Builder
	for i, c := range name {
		if 'A' <= c && c <= 'Z' && i > 0 && name[i-1] != '-' {
			b.WriteByte('-')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// post sends a request, and returns the beginning of the answer. The default type is JSON.
func post(x *exchange, method, to string, text []byte, h http.Header) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, to, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range h {
		r.Header[name] = values
	}
	answer, err := (&http.Client{Transport: x}).Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}
