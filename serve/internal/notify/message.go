package notify

import (
	"github.com/nicholas-fedor/shoutrrr/pkg/format"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// Message is a message to people about an incident.
type Message struct {
	// Title says in a line what is wrong, or what no longer is. Text has the rest.
	Title, Text string
	// Link is where people see more.
	Link string
	// Owner, Runbook and Note are what the configuration says of the topic; each may be empty.
	Owner, Runbook, Note string
	// Key is the same for all messages about one incident, and Over says that it is over. A pager
	// closes by them what it opened. A newer message of a key takes the place of one that waits.
	Key  string
	Over bool
	// Urgent says that an operator has to look at once.
	Urgent bool
	// Drop reports that the message is not needed any more: another process sends it. Nil never
	// does.
	Drop func() bool
	// Done is called once, from a goroutine of the receiver: with nil when the receiver accepted
	// the message, with [ErrDropped], or with the error for which the message was given up. It is
	// not called if the receiver is ended before.
	Done func(error)
}

// words returns the text and the parameters of a message as a service takes them.
func (m *Message) words(to types.Service) (text string, params types.Params) {
	full := m.Title + "\n" + m.rest()
	severity := "warning"
	if m.Urgent {
		severity = "critical"
	}
	switch to.GetID() {
	case pagerduty.Scheme:
		params = types.Params{"action": "trigger", "dedup_key": m.Key, "severity": severity, "client": "siding", "client_url": m.Link}
		if m.Over {
			params["action"] = "resolve"
		}
		return full, params
	case generic.Scheme: // fields of the JSON, where the URL asks for JSON
		state := "begun"
		if m.Over {
			state = "over"
		}
		params = types.Params{"title": m.Title, "link": m.Link, "key": m.Key, "severity": severity, "state": state}
		for key, text := range map[string]string{"owner": m.Owner, "runbook": m.Runbook, "note": m.Note} {
			if text != "" {
				params[key] = text
			}
		}
		return full, params
	}
	if hasTitle(to) {
		return m.rest(), types.Params{"title": m.Title}
	}
	return full, types.Params{}
}

// rest is what a message says below its title.
func (m *Message) rest() string {
	text := m.Text + "\n"
	for _, line := range []struct{ about, text string }{{"owner", m.Owner}, {"note", m.Note}, {"runbook", m.Runbook}} {
		if line.text != "" {
			text += line.about + ": " + line.text + "\n"
		}
	}
	return text + m.Link
}

// hasTitle reports whether a service shows a title beside the text. The others refuse one.
func hasTitle(to types.Service) bool {
	resolver := format.NewPropKeyResolver(format.GetServiceConfig(to))
	_, err := resolver.Get("title")
	return err == nil
}
