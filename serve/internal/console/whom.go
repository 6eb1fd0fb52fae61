package console

import (
	"net/http"
	"strings"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// whomModel is the model of the template "whom": letters by a header, or a member of their values.
type whomModel struct {
	Which, Back, Here string
	Problem           string
	By                string
	// Fields are the filter in a form.
	Fields []field
	// Counts is nil before there is something to count by, and if there is a problem.
	Counts *whomCounts
}

// whomCounts are letters by their values.
type whomCounts struct {
	api.Values
	// Says is what the numbers are worth; one sentence each.
	Says []string
}

// whomPage counts the letters of a filter by what is in them. It reads them, so it does not follow
// what happens.
func whomPage(s *site, r *visit) (*answer, error) {
	name := r.PathValue("topic")
	role, err := roleOn(s.cfg.Desk, r, name)
	if err != nil {
		return nil, err
	}
	if role < access.Reader {
		return nil, &pageError{http.StatusForbidden, "To count letters by what is in them takes the role " + access.Reader.String() + " on " + name + ". Whoever configures the server gives it, by your name or by one of your groups."}
	}
	f, err := parseFilter(r.query, r.now)
	if err != nil {
		return nil, err
	}
	f.Cursor = ""
	path := topicPath(r.base, name)
	m := newWhomModel(name, path, &f, strings.TrimSpace(r.query.Get("by")))
	var problem error
	if m.By != "" {
		v, err := operate.CountValues(r.Context(), s.cfg.Desk, r.who, &request.Values{Topic: request.Topic{Topic: name}, Filter: f.api(), By: m.By})
		if problem = err; err == nil {
			m.Counts = newWhomCounts(&v)
		}
	}
	m.Problem = s.problemOf(r, problem)
	a := &subject{topic: name, role: role, above: []link{{"Topics", r.base + "/"}, {name, m.Back}}}
	return &answer{page: a.page("Whom", "Whom it hurts"), template: "whom", model: m, problem: problem}, nil
}

func newWhomModel(topic, path string, f *Filter, by string) *whomModel {
	m := &whomModel{Which: "Open letters of " + visible(topic), Back: path + f.query(), Here: path + "/whom", By: by}
	if f.State != "" {
		m.Which = "Letters of " + visible(topic)
	}
	var words []string
	for _, c := range f.chips("") {
		words = append(words, c.Key+" "+c.Value)
	}
	if len(words) > 0 {
		m.Which += ": " + visible(list(words))
	}
	m.Fields = fieldsOf(f.values())
	return m
}

func newWhomCounts(v *api.Values) *whomCounts {
	c := &whomCounts{Values: *v}
	add := func(is bool, text string) {
		if is {
			c.Says = append(c.Says, text)
		}
	}
	add(!v.Complete, "These are the newest "+number.Of(v.Counted, "letter")+": there was no time for the others.")
	add(!v.Exact, "There are more than 10,000 values, so the numbers are at most these.")
	add(v.Problem != "", v.Problem+".")
	return c
}
