package console

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// aim is the letters that somebody acts on: all open ones of a topic that a filter selects, or one.
type aim struct {
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
	// single tells that it is one letter, at a place.
	single    bool
	partition int32
	offset    int64
}

// aimAt returns the letters that a request for an act is about. act is the end of its address.
func (c *Console) aimAt(r *request, act string) (*aim, error) {
	name := r.PathValue("topic")
	role, err := c.roleOn(r, name)
	if err != nil {
		return nil, err
	}
	topic := topicPath(r.base, name)
	a := &aim{topic: name, role: role, path: topic, above: []link{{"Topics", r.base + "/"}, {name, topic}}}
	if r.PathValue("offset") != "" {
		partition, offset, err := letterIn(r)
		if err != nil {
			return nil, err
		}
		a.single, a.partition, a.offset = true, partition, offset
		a.path = letterPath(topic, partition, offset)
		a.filter.Offset = []string{fmt.Sprintf("%d:%d", partition, offset)}
		a.words = []string{fmt.Sprintf("letter %d/%d", partition, offset)}
		a.above = append(a.above, link{a.words[0], a.path})
		a.here = a.path + act
		return a, nil
	}
	f, err := parseFilter(r.query, r.now)
	if err != nil {
		return nil, err
	}
	if f.State != "" {
		return nil, badInput("Only open letters can be acted on, and the filter selects those that are %s.", f.State)
	}
	before, err := parseTime("before", r.query.Get("before"), r.now)
	if err != nil {
		return nil, err
	}
	if before.IsZero() {
		if before, err = c.afterAll(r, name); err != nil {
			return nil, err
		}
	}
	a.path, a.here = topic+f.query(), topic+act
	a.above[1].Path = a.path
	f.fix()
	before = before.Truncate(time.Millisecond)
	a.filter = api.Filter{Class: f.Classes, Fingerprint: f.Fingerprints, Group: f.Groups, Reason: f.Reasons, Where: f.Where, Since: f.Since, Until: f.Until, EnteredUntil: before}
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
func (c *Console) afterAll(r *request, topic string) (time.Time, error) {
	t, err := c.data.Topic(r.Context(), r.who, topic)
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

// letterIn returns the letter that an address names.
func letterIn(r *request) (partition int32, offset int64, err error) {
	p, err1 := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	offset, err2 := strconv.ParseInt(r.PathValue("offset"), 10, 64)
	if err1 != nil || err2 != nil || p < 0 || offset < 0 {
		return 0, 0, badInput("%s/%s is no letter: a partition and an offset are numbers from 0 on", r.PathValue("partition"), r.PathValue("offset"))
	}
	return int32(p), offset, nil
}

// which says which letters they are, as the beginning of a page's sentence.
func (a *aim) which() string {
	switch {
	case len(a.words) == 0:
		return "All open letters of " + visible(a.topic)
	case a.single:
		return "Letter " + a.words[0][len("letter "):] + " of " + visible(a.topic)
	}
	return "Open letters of " + visible(a.topic) + ": " + visible(list(a.words))
}

// page returns the page of an act.
func (a *aim) page(act, heading string) page {
	return page{Title: act + " · " + a.topic, Section: "topics", Heading: heading, Above: a.above, Role: a.role.String()}
}
