package console

import (
	"net/url"

	"github.com/sidingkafka/siding/serve/api"
)

// peopleModel is the model of the template "people": whose topic it is, and what to do about it.
type peopleModel struct {
	Owner, Note string
	// Runbook is where to read what to do. IsLink reports whether a page may lead there.
	Runbook string
	IsLink  bool
}

// newPeopleModel returns what the configuration says of a topic to people; nil for nothing.
func newPeopleModel(t *api.Topic) *peopleModel {
	m := peopleModel{Owner: t.Owner, Note: t.Note, Runbook: t.Runbook}
	if m == (peopleModel{}) {
		return nil
	}
	u, err := url.Parse(m.Runbook)
	m.IsLink = err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	return &m
}
