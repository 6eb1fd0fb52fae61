package serve

import (
	"cmp"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Topic says what dead-letter topics mean to their team.
type Topic struct {
	// Match is a pattern of dead-letter topics' names: * is any text, ? any character, [abc] one of
	// these. Required.
	Match string `yaml:"match"`
	// Criticality is how much the topics matter, which sets the defaults of alerts: critical, high,
	// normal, low or minor. Default normal.
	Criticality Criticality `yaml:"criticality"`
	// ManualOnly keeps rules from redriving the topics: only operators do. Default true for
	// critical topics, and false for others.
	ManualOnly *bool `yaml:"manual-only"`
	// Owner is who looks after the topics, such as a team, in at most 200 bytes on one line. It
	// stands with the note and the runbook in messages, in the API and on pages. Default none.
	Owner string `yaml:"owner"`
	// Runbook is the http or https URL of what to do about the topics' letters, in at most 1,000
	// bytes. Default none.
	Runbook string `yaml:"runbook"`
	// Note is what whoever is on call should know, in at most 500 bytes on one line. Default none.
	Note string `yaml:"note"`
	// Alerts overrides single thresholds of the criticality. A negative one, as in -1 or -1s,
	// switches its alert off.
	Alerts Thresholds `yaml:"alerts"`
	// Retention deletes letters by age and number. Without it Kafka's own retention alone deletes.
	// Default none.
	Retention *Retention `yaml:"retention"`
}

// Bounds of what the configuration says of a topic to people, in bytes.
const (
	mostOwner   = 200
	mostRunbook = 1_000
	mostNote    = 500
)

// checkTexts checks what the configuration says of topics in words. Pages and messages show it, so
// it has no characters that a person cannot see.
func checkTexts(t *Topic, wrong func(key, format string, args ...any)) {
	if _, ok := criticalities[t.criticality()]; !ok {
		wrong("criticality", "%q: critical, high, normal, low or minor", t.Criticality)
	}
	for _, text := range []struct {
		key, text string
		most      int
	}{{"owner", t.Owner, mostOwner}, {"runbook", t.Runbook, mostRunbook}, {"note", t.Note, mostNote}} {
		switch {
		case len(text.text) > text.most:
			wrong(text.key, "it has %d bytes, and at most %d are allowed", len(text.text), text.most)
		case !utf8.ValidString(text.text) || strings.ContainsFunc(text.text, func(r rune) bool { return !unicode.IsPrint(r) }):
			wrong(text.key, "%q has line breaks or other characters that cannot be seen", text.text)
		}
	}
	if t.Runbook == "" {
		return
	}
	if u, err := url.Parse(t.Runbook); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(t.Runbook, " ") {
		wrong("runbook", "%.200q is no URL such as https://wiki.example.com/orders: http or https, without a name and password", t.Runbook)
	}
}

// manualOnly reports whether rules may not redrive the topics.
func (t *Topic) manualOnly() bool {
	if t.ManualOnly != nil {
		return *t.ManualOnly
	}
	return t.criticality() == Critical
}

func (t *Topic) criticality() Criticality {
	if t.Criticality == "" {
		return Normal
	}
	return t.Criticality
}

// settings returns what the server has to know of the topic, with the defaults of its criticality.
func (t *Topic) settings() watch.Settings {
	is, by := t.Alerts, criticalities[t.criticality()]
	is.WarnOpen, is.PageOpen, is.New = cmp.Or(is.WarnOpen, by.WarnOpen), cmp.Or(is.PageOpen, by.PageOpen), cmp.Or(is.New, by.New)
	is.Oldest, is.NewClass, is.Retention = cmp.Or(is.Oldest, by.Oldest), cmp.Or(is.NewClass, watch.NewFor), cmp.Or(is.Retention, 48*time.Hour)
	is.Held, is.Blocked, is.Gone = cmp.Or(is.Held, time.Minute), cmp.Or(is.Blocked, 2*time.Minute), cmp.Or(is.Gone, 5*time.Minute)
	return watch.Settings{Criticality: string(t.criticality()), Owner: t.Owner, Runbook: t.Runbook, Note: t.Note, ManualOnly: t.manualOnly(), Retains: t.Retention != nil, Thresholds: watch.Thresholds(is)}
}
