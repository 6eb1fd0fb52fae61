package console

import (
	"fmt"
	"net/url"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// subject is the letters that an operator acts on: all open ones of a topic that a filter selects,
// or one.
type subject struct {
	topic string
	role  access.Role
	path  string // of the page that shows the letters
	here  string // of the page that acts on them
	above []link
	// words say which letters they are.
	words  []string
	filter api.Filter
	// fields are the filter in a form, with fixed times: what a plan has selected, its run selects.
	fields []field
	// single reports that it is one letter, at a place.
	single    bool
	partition int32
	offset    int64
}

// subjectOf returns the letters that a request for an act is about. act is the end of its address.
func subjectOf(d *operate.Desk, r *visit, act string) (*subject, error) {
	name := r.PathValue("topic")
	role, err := roleOn(d, r, name)
	if err != nil {
		return nil, err
	}
	if r.PathValue("offset") != "" {
		return oneSubject(r, act, role)
	}
	return openSubject(r, act, role, func() (time.Time, error) { return afterAll(d, r, name) })
}

func newSubject(r *visit, role access.Role) *subject {
	name := r.PathValue("topic")
	topic := topicPath(r.base, name)
	return &subject{topic: name, role: role, path: topic, above: []link{{"Topics", r.base + "/"}, {name, topic}}}
}

// oneSubject returns the letter that an address names.
func oneSubject(r *visit, act string, role access.Role) (*subject, error) {
	a := newSubject(r, role)
	partition, offset, err := placeIn(r)
	if err != nil {
		return nil, err
	}
	a.single, a.partition, a.offset = true, partition, offset
	a.path = letterPath(a.path, partition, offset)
	a.filter.Offset = []string{fmt.Sprintf("%d:%d", partition, offset)}
	a.words = []string{fmt.Sprintf("letter %d/%d", partition, offset)}
	a.above = append(a.above, link{a.words[0], a.path})
	a.here = a.path + act
	return a, nil
}

// openSubject returns the open letters that a filter selects, and that were written before a time:
// that of the form, or the one that latest returns.
func openSubject(r *visit, act string, role access.Role, latest func() (time.Time, error)) (*subject, error) {
	a := newSubject(r, role)
	f, err := parseFilter(r.query, r.now)
	if err != nil {
		return nil, err
	}
	if r.query.Get("ticked") != "" && len(f.Offsets) == 0 {
		return nil, badInput("No letter is ticked. Go back, and tick those that are meant.")
	}
	if f.State != "" {
		return nil, badInput("Only open letters can be acted on, and the filter selects those that are %s.", f.State)
	}
	before, err := parseTime("before", r.query.Get("before"), r.now)
	if err != nil {
		return nil, err
	}
	if before.IsZero() {
		if before, err = latest(); err != nil {
			return nil, err
		}
	}
	topic := a.path
	a.path, a.here = topic+f.query(), topic+act
	a.above[1].Path = a.path
	f.fix()
	before = before.Truncate(time.Millisecond)
	a.filter = f.api()
	a.filter.EnteredUntil = before
	for _, chip := range f.chips("") {
		a.words = append(a.words, chip.Key+" "+chip.Value)
	}
	q, _ := url.ParseQuery(trimQuery(f.query()))
	q.Set("before", before.UTC().Format(time.RFC3339Nano))
	a.fields = fieldsOf(q)
	return a, nil
}

// afterAll returns a time after that of each open letter that the topic's page shows. A host whose
// clock is fast wrote some of them later than now.
func afterAll(d *operate.Desk, r *visit, topic string) (time.Time, error) {
	t, err := operate.ViewTopic(r.Context(), d, r.who, topic)
	if err != nil || t.Newest == nil || t.Newest.Before(r.now) {
		return r.now, err
	}
	return t.Newest.Add(time.Millisecond), nil // times of letters are whole ones
}

func trimQuery(q string) string {
	if q != "" {
		return q[1:]
	}
	return q
}

// which says which letters they are, as the beginning of a page's sentence.
func (a *subject) which() string {
	switch {
	case len(a.words) == 0:
		return "All open letters of " + visible(a.topic)
	case a.single:
		return "Letter " + a.words[0][len("letter "):] + " of " + visible(a.topic)
	}
	return "Open letters of " + visible(a.topic) + ": " + visible(list(a.words))
}

// page returns the page of an act.
func (a *subject) page(act, heading string) page {
	return page{Title: act + " · " + a.topic, Section: "topics", Heading: heading, Above: a.above, Role: a.role.String()}
}

// afterwards is where what was done can be seen: the letter's story, or the topic's audit.
func (a *subject) afterwards(r *visit) string {
	if a.single {
		return a.path
	}
	return r.base + "/audit?" + url.Values{"topic": {a.topic}}.Encode()
}

// letter names the one letter.
func (a *subject) letter() request.Letter {
	return request.Letter{Topic: request.Topic{Topic: a.topic}, Partition: a.partition, Offset: a.offset}
}
