package console

import (
	"cmp"
	"context"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// pageLetters is how many letters a page has.
const pageLetters = 50

// incidentModel is the model of the template "incident".
type incidentModel struct {
	operate.Topic
	Path    string
	Summary []phrase
	People  *peopleModel // nil without
	Alerts  []alert
	Runs    []runRow
	Chips   []chip
	Clear   string
	Ranges  []choice
	Picture *picture
	// Groups are absent while a filter selects by state: they count open letters.
	Groups  []classRow
	Letters letterList
	// Failed names letters on which the expression failed; empty if there are none.
	Failed string
	// First and Next are the addresses of the first and the next page of letters; empty without.
	First, Next string
	Filtered    bool
	State       string
	Where       string
	// Acts are what can be done to the letters, and CannotAct is why nothing can.
	Acts      []link
	CannotAct string
	Commands  []command
	// Whom leads to the letters by what is in them; empty for those who may not read.
	Whom string
	// Began is how the failures in the picture began; nil if there are none.
	Began *beginning
	// Standstill says why no letters may come although records fail.
	Standstill []phrase
	Consumers  consumersModel

	newest   time.Time // failure of a letter in a group; zero without
	selected int64     // letters in groups
}

// runRow is a run that is not finished.
type runRow struct {
	redrive.Outcome
	Link    string
	Began   moment
	Summary string
}

// incidentPage is the page of one topic.
func incidentPage(d *operate.Desk, r *visit) (*page, error) {
	base, name := r.base, r.PathValue("topic")
	role, err := roleOn(d, r, name)
	if err != nil {
		return nil, err
	}
	f, err := parseFilter(r.query, r.now)
	if err != nil {
		return nil, err
	}
	suggested, err := operate.ListGroups(r.Context(), d, r.who, &request.Groups{Topic: request.Topic{Topic: name}})
	if err != nil {
		suggested = nil // suggestions are no more than that
	}
	path := topicPath(base, name)
	query := f.query()
	p := &page{
		Title: name, Section: "topics", Heading: name, Above: []link{{"Topics", base + "/"}}, Role: role.String(), Form: newForm(&f, path, role >= access.Reader, suggested), address: path + query,
		live: viewOf("incident", view.KeyOf(base, name, role.String(), query), func() uint64 { return operate.Version(d, name) },
			func(ctx context.Context, now time.Time) (any, error) {
				f, err := parseFilter(r.query, now) // times before now have moved
				if err != nil {
					return nil, err
				}
				return readIncident(ctx, d, r.who, name, path, &f, now)
			}),
	}
	p.live.Reads = f.Where != ""
	return p, nil
}

// readIncident returns the model of a topic's page.
func readIncident(ctx context.Context, d *operate.Desk, who *access.Identity, name, path string, f *Filter, now time.Time) (*incidentModel, error) {
	t, err := operate.ViewTopic(ctx, d, who, name)
	if err != nil {
		return nil, err
	}
	m := newIncidentModel(&t, f, path, now)
	consumers, err := operate.ListConsumers(ctx, d, who, &request.Topic{Topic: name})
	if err != nil {
		return nil, err
	}
	m.Consumers, m.Standstill = newConsumersModel(&consumers, now), standstill(&t, now)
	of, filter := request.Topic{Topic: name}, f.api()
	if f.State == "" && f.Where == "" {
		groups, err := operate.ListGroups(ctx, d, who, &request.Groups{Topic: of, Filter: filter})
		if err != nil {
			return nil, err
		}
		m.group(groups, f, now)
	}
	most, err := mostSince(ctx, d, who, name, f, m.selected, now)
	if err != nil {
		return nil, err
	}
	w := windowOf(f, m.newest, most, now)
	series, err := operate.Times(ctx, d, who, name, &filter, w.from, w.by, w.n, mostSeries)
	if err != nil {
		return nil, err
	}
	m.draw(w, series, f, now)
	if err := m.begin(ctx, d, who, w, f, now); err != nil {
		return nil, err
	}
	letters, err := operate.ListLetters(ctx, d, who, &request.Letters{Topic: of, Filter: filter, Cursor: f.Cursor, Limit: pageLetters})
	if err != nil {
		return nil, err
	}
	glances, unread := operate.Glances(ctx, d, who, name, letters.Letters)
	m.list(&letters, glances, unread, f, now)
	return m, nil
}

// newIncidentModel returns what the page says of a topic itself.
func newIncidentModel(t *operate.Topic, f *Filter, path string, now time.Time) *incidentModel {
	m := &incidentModel{
		Topic: *t, Path: path, Summary: sentence(t, now), People: newPeopleModel(&t.Topic), Alerts: alertsOf(t), Chips: f.chips(path), Clear: path, State: f.State, Where: f.Where,
		Filtered: f.query() != "",
	}
	m.Acts, m.CannotAct = actsOn(t, f, path)
	m.Commands = listCommands(t.Topic.Topic, f)
	if whole := *f; t.Role >= access.Reader {
		whole.Cursor = ""
		m.Whom = path + "/whom" + whole.query()
	}
	for i := range t.Runs {
		if run := &t.Runs[i]; !run.State.Finished() {
			m.Runs = append(m.Runs, runRow{*run, runPath(path, run.ID), momentOf(run.Started, now), runText(run)})
		}
	}
	for _, since := range []string{"", "1h", "6h", "24h", "7d", "30d"} {
		one := *f
		one.since, one.until, one.Cursor = since, "", ""
		m.Ranges = append(m.Ranges, choice{cmp.Or(since, "any time"), path + one.query(), f.since == since && f.until == ""})
	}
	return m
}

// group adds the groups of open letters. A filter's letters are counted beside all.
func (m *incidentModel) group(groups []api.Group, f *Filter, now time.Time) {
	for i := range groups {
		m.selected += groups[i].Open
		if groups[i].Last.After(m.newest) {
			m.newest = groups[i].Last
		}
	}
	m.Groups = classRows(operate.FoldGroups(groups), f, m.Path, now, standing(&m.Topic))
	first := *f
	if first.Cursor = ""; m.selected > 0 && first.query() != "" {
		m.Summary = append([]phrase{{Text: number.Format(m.selected) + " selected", Red: true}}, m.Summary...)
	}
}

// draw adds the picture.
func (m *incidentModel) draw(w window, series []letterindex.Series, f *Filter, now time.Time) {
	m.Picture = newPicture(w, series, now, func(since, until time.Time) string {
		zoomed := f.between(since, until)
		return m.Path + zoomed.query()
	}, func(class string) string {
		one := *f
		one.Classes, one.Cursor = []string{class}, ""
		return m.Path + one.query()
	})
}

// mostSince returns a time since which nine of ten open letters failed that a filter selects, of
// all which there are: the earliest time of one of spans. It is zero if none is, or if the filter
// has bounds.
func mostSince(ctx context.Context, d *operate.Desk, who *access.Identity, topic string, f *Filter, of int64, now time.Time) (time.Time, error) {
	if of == 0 || f.since != "" || f.until != "" {
		return time.Time{}, nil
	}
	filter := f.api()
	filter.State = []string{"open"}
	for _, s := range spans {
		all, err := operate.Times(ctx, d, who, topic, &filter, now.Add(-s), s, 1, 0)
		if err != nil {
			return time.Time{}, err
		}
		n := int64(0)
		for _, one := range all {
			n += one.Counts[0]
		}
		if 10*n >= 9*of {
			return now.Add(-s), nil
		}
	}
	return time.Time{}, nil
}

// begin adds to the picture how it began, and what happened meanwhile.
func (m *incidentModel) begin(ctx context.Context, d *operate.Desk, who *access.Identity, w window, f *Filter, now time.Time) error {
	filter := f.api()
	is, err := operate.Began(ctx, d, who, m.Topic.Topic.Topic, &filter, w.from, w.from.Add(time.Duration(w.n)*w.by))
	if err != nil {
		return err
	}
	m.Picture.mark(w, is.Releases, m.Topic.Runs, m.Path, now)
	if is.First == nil {
		return nil
	}
	// without its host the sentence is shorter
	glances, _ := operate.Glances(ctx, d, who, m.Topic.Topic.Topic, []api.Letter{*is.First})
	m.Began = beginningOf(is.First, glances[selection.Place{Partition: is.First.Partition, Offset: is.First.Offset}].Host, m.Path, f, now)
	return nil
}

// list adds a page of letters.
func (m *incidentModel) list(page *api.Letters, glances map[selection.Place]operate.Glance, unread error, f *Filter, now time.Time) {
	m.Failed = page.Problem
	m.Letters = newLetterList(page.Letters, glances, unread, m.Role >= access.Reader, f, m.Path, now)
	at := *f
	if at.Cursor = page.Next; page.Next != "" {
		m.Next = m.Path + at.query()
	}
	if at.Cursor = ""; f.Cursor != "" {
		m.First = m.Path + at.query()
	}
}

// actsOn returns what the sender can do to the letters of a filter, or why they cannot.
func actsOn(t *operate.Topic, f *Filter, path string) (acts []link, cannot string) {
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
