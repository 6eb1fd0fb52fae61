package console

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// pageLetters is how many letters a page has.
const pageLetters = 50

// quietAfter is how long a group must not have failed to be quiet.
const quietAfter = time.Hour

// form is the filter of a page, as its sender typed it.
type form struct {
	Path                               string
	Class, Fingerprint, Group          string
	Reason, State, Since, Until, Where string
	// MayRead tells whether there is a field for an expression.
	MayRead                            bool
	Reasons, States, Classes, InGroups []string
	Active                             bool
	// More are further values, beyond those that the fields show.
	More []field
}

// field is a field of a form that nobody sees.
type field struct{ Name, Value string }

// incidentModel is the model of the template "incident".
type incidentModel struct {
	Topic
	Path    string
	Says    []phrase
	Alerts  []alert
	Runs    []runRow
	Chips   []chip
	Clear   string
	Ranges  []choice
	Picture *picture
	// Groups are absent while a filter selects by state: they count open letters.
	Groups  []groupRow
	Letters []letterRow
	// Failed tells of letters on which the expression failed; empty if there are none.
	Failed string
	// First and Next are the addresses of the first and the next page of letters; empty without.
	First, Next string
	Filtered    bool
	State       string
	Where       string
	// Acts are what can be done to the letters, and CannotAct is why nothing can.
	Acts      []link
	CannotAct string
}

// choice is one of several.
type choice struct {
	Name, Path string
	Chosen     bool
}

// groupRow is a group of open letters.
type groupRow struct {
	api.Group
	ID string // of the row, for what marks changes
	// Link selects its letters; empty if no filter does: they have no class and no fingerprint.
	Link        string
	SampleLink  string
	Tags        []tag
	First, Last moment
}

// tag is a word about a group.
type tag struct {
	Text, Title string
	Red         bool
}

// letterRow is a letter in a list.
type letterRow struct {
	api.Letter
	Link   string
	Failed moment
	State  string
	Open   bool
}

// runRow is a run that is not finished.
type runRow struct {
	redrive.Outcome
	Link  string
	Began moment
	Says  string
}

// incident is the page of one topic.
func (c *Console) incident(r *request) (*page, error) {
	who, base, name := r.who, r.base, r.PathValue("topic")
	role, err := c.roleOn(r, name)
	if err != nil {
		return nil, err
	}
	f, err := parseFilter(r.query, r.now)
	if err != nil {
		return nil, err
	}
	path := topicPath(base, name)
	query := f.query()
	p := &page{
		Title: name, Section: "topics", Heading: name, Above: []link{{"Topics", base + "/"}}, Role: role.String(), Form: c.form(r, &f, name, path, role), address: path + query,
		live: viewOf("incident", keyOf(base, name, role.String(), query), func() uint64 { return c.data.Version(name) },
			func(ctx context.Context, now time.Time) (any, error) {
				f, err := parseFilter(r.query, now) // times before now have moved
				if err != nil {
					return nil, err
				}
				return c.incidentModel(ctx, now, who, name, path, &f)
			}),
	}
	p.live.reads = f.Where != ""
	return p, nil
}

// form returns the filter's form.
func (c *Console) form(r *request, f *Filter, topic, path string, role access.Role) *form {
	var more []field // fields have one value each
	one := func(name string, all []string) string {
		if len(all) == 0 {
			return ""
		}
		for _, value := range all[1:] {
			more = append(more, field{name, value})
		}
		return all[0]
	}
	is := &form{
		Path: path, Class: one("class", f.Classes), Fingerprint: one("fingerprint", f.Fingerprints), Group: one("group", f.Groups), Reason: one("reason", f.Reasons), State: f.State, Since: f.since, Until: f.until, Where: f.Where, MayRead: role >= access.Reader,
		States: filterStates, Active: f.query() != "",
	}
	is.More = more
	for _, reason := range []headers.Reason{
		headers.ReasonTerminal, headers.ReasonExhausted, headers.ReasonExpired, headers.ReasonHeld, headers.ReasonDecode, headers.ReasonMalformed, headers.ReasonPanic,
		headers.ReasonCrashLoop, headers.ReasonTooLarge, headers.ReasonUnroutable, headers.ReasonUnsupportedVersion,
	} {
		is.Reasons = append(is.Reasons, string(reason))
	}
	groups, err := c.data.Groups(r.Context(), r.who, topic, &Filter{})
	if err != nil {
		return is // suggestions are no more than that
	}
	seen := map[string]bool{}
	for _, g := range groups {
		if !seen["class "+g.Class] && g.Class != "" && len(is.Classes) < 50 {
			is.Classes = append(is.Classes, g.Class)
		}
		seen["class "+g.Class] = true
		for _, name := range g.Groups {
			if !seen["group "+name] && len(is.InGroups) < 50 {
				is.InGroups = append(is.InGroups, name)
			}
			seen["group "+name] = true
		}
	}
	return is
}

func (c *Console) incidentModel(ctx context.Context, now time.Time, who *access.Identity, name, path string, f *Filter) (any, error) {
	t, err := c.data.Topic(ctx, who, name)
	if err != nil {
		return nil, err
	}
	m := incidentModel{
		Topic: *t, Path: path, Says: sentence(t, now), Alerts: alertsOf(t), Chips: f.chips(path), Clear: path, State: f.State, Where: f.Where,
		Filtered: f.query() != "",
	}
	m.Acts, m.CannotAct = actsOn(t, f, path)
	for i := range t.Runs {
		if run := &t.Runs[i]; !run.State.Finished() {
			m.Runs = append(m.Runs, runRow{*run, runPath(path, run.ID), momentOf(run.Started, now), runSays(run)})
		}
	}
	var newest time.Time
	if f.State == "" && f.Where == "" {
		groups, err := c.data.Groups(ctx, who, name, f)
		if err != nil {
			return nil, err
		}
		for i, g := range groups {
			if g.Last.After(newest) {
				newest = g.Last
			}
			if i < mostGroups {
				m.Groups = append(m.Groups, groupOf(g, f, path, now, t.Guards))
			}
		}
	}
	w := windowOf(f, newest, now)
	series, err := c.data.Times(ctx, who, name, f, w.from, w.by, w.n, mostSeries)
	if err != nil {
		return nil, err
	}
	m.Picture = newPicture(w, series, now, func(since, until time.Time) string {
		zoomed := f.between(since, until)
		return path + zoomed.query()
	}, func(class string) string {
		one := *f
		one.Classes, one.Cursor = []string{class}, ""
		return path + one.query()
	})
	for _, since := range []string{"", "1h", "6h", "24h", "7d", "30d"} {
		one := *f
		one.since, one.until, one.Cursor = since, "", ""
		m.Ranges = append(m.Ranges, choice{cmp.Or(since, "any time"), path + one.query(), f.since == since && f.until == ""})
	}
	page, err := c.data.Letters(ctx, who, name, f, pageLetters)
	if err != nil {
		return nil, err
	}
	m.Failed = page.Problem
	for _, l := range page.Letters {
		m.Letters = append(m.Letters, letterRowOf(l, path, now))
	}
	at := *f
	if at.Cursor = page.Next; page.Next != "" {
		m.Next = path + at.query()
	}
	if at.Cursor = ""; f.Cursor != "" {
		m.First = path + at.query()
	}
	return m, nil
}

// actsOn returns what somebody can do to the letters of a filter, or why they cannot.
func actsOn(t *Topic, f *Filter, path string) (acts []link, cannot string) {
	switch {
	case t.Role < access.Operator:
		return nil, takesRole(access.Operator, t.Topic.Topic)
	case f.State != "":
		return nil, "Only open letters can be brought back or discarded: the filter selects those that are " + f.State + "."
	case t.Open == 0:
		return nil, ""
	}
	whole := *f
	whole.Cursor = ""
	return []link{{"Plan a redrive…", path + "/redrive" + whole.query()}, {"Discard…", path + "/discard" + whole.query()}}, ""
}

// takesRole says which role it takes to do something, and who gives it.
func takesRole(role access.Role, topic string) string {
	return "To bring letters back or to discard them takes the role " + role.String() + " on " + topic + ". Whoever configures the server gives it, by your name or by one of your groups."
}

// mostGroups bounds the groups of a page: those with the most letters.
const mostGroups = 200

func groupOf(g api.Group, f *Filter, path string, now time.Time, guards []api.Guard) groupRow {
	one := *f
	one.Classes, one.Fingerprints, one.Cursor = []string{g.Class}, []string{g.Fingerprint}, ""
	row := groupRow{
		Group: g, ID: fmt.Sprintf("group-%s", idOf(g.Class, g.Fingerprint)),
		SampleLink: letterPath(path, g.Partition, g.Offset), First: momentOf(g.First, now), Last: momentOf(g.Last, now),
	}
	if g.Class != "" || g.Fingerprint != "" {
		row.Link = path + one.query() + "#letters"
	}
	if g.FailedAgain > 0 {
		row.Tags = append(row.Tags, tag{"FAILED AGAIN", number.Of(g.FailedAgain, "letter") + " of it came back and failed again", true})
	}
	if g.New {
		row.Tags = append(row.Tags, tag{"NEW", "the class was not seen before the last day", true})
	}
	if len(row.Tags) == 0 && now.Sub(g.Last) >= quietAfter && !isHeldBy(guards, g.Groups) {
		row.Tags = append(row.Tags, tag{"QUIET", "nothing failed so within the last hour", false})
	}
	return row
}

// letterPath is the address of a letter's page. path is that of its topic.
func letterPath(path string, partition int32, offset int64) string {
	return fmt.Sprintf("%s/letters/%d/%d", path, partition, offset)
}

func letterRowOf(l api.Letter, path string, now time.Time) letterRow {
	row := letterRow{Letter: l, Link: letterPath(path, l.Partition, l.Offset), Failed: momentOf(l.FailedAt, now), State: l.State}
	row.Open = isOpen(l.State)
	if row.State == "" {
		row.State = "open"
	}
	return row
}
