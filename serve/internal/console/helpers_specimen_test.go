package console

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/html"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// texts are what records and people can put into pages.
type texts struct{ class, message, value, name string }

var plain = texts{"tax.TableMiss", `no rate for region "N?"`, `{"id": 7, "amount": 12345678901234567890}`, "billing"}

// specimen is one topic, orders.dlq, with one letter of each kind, as a sender with a role sees it.
type specimen struct {
	texts
	role    access.Role
	empty   bool      // there is no topic
	settled bool      // nothing is open
	held    bool      // its source is
	clear   bool      // nothing is hidden
	paused  bool      // the rule
	silent  bool      // no process owns the run
	people  api.Topic // Owner, Runbook and Note count
}

// runbook is what the configuration has, which takes addresses of sites alone.
const runbook = "https://wiki.example.com/orders?step=1&of=2"

// isRunbook reports whether an element leads to the runbook: the one address outside of the server
// to which pages lead.
func isRunbook(n *html.Node) bool {
	return n.Data == "a" && attr(n, "href") == runbook && attr(n, "rel") == "external noopener noreferrer"
}

func newSpecimen(t texts) *specimen {
	return &specimen{texts: t, role: access.Reader, people: api.Topic{Owner: t.name, Runbook: runbook, Note: t.message}}
}

func ptr[T any](v T) *T { return &v }

// past is a time shortly before now, so that ages are whole.
func past() time.Time { return time.Now().Add(-500 * time.Millisecond) }

func (s *specimen) topic() operate.Topic {
	now := past()
	t := operate.Topic{
		Topic: api.Topic{
			Topic: "orders.dlq", Source: "orders", Criticality: "high", Known: &now, Open: 2114, Pending: 3, Resolved: 7, Recent: 31,
			Oldest: ptr(now.Add(-4 * time.Hour)), Newest: ptr(now.Add(-20 * time.Second)), TopClass: s.class, Problem: s.message, Owner: s.people.Owner, Runbook: s.people.Runbook, Note: s.people.Note,
		},
		Role: s.role, Retention: 9 * 24 * time.Hour,
		Alerts: []incident.Alert{{Severity: incident.Warn, Text: "the first letters of " + s.class}, {Severity: incident.Page, Text: "2,114 letters open"}},
		Runs: []redrive.Outcome{
			{ID: s.name, By: s.name, Why: s.message, State: redrive.Sending, Waiting: s.message, Started: now.Add(-time.Minute), Counts: redrive.Counts{Selected: 9, Sent: 5, Failed: 1, Pending: 2}},
			{ID: "r0", By: "ada", Why: "", State: redrive.Aborted, Cause: s.message, Started: now.Add(-time.Hour), Resumed: []redrive.Resumption{{At: now.Add(-50 * time.Minute), Owner: "ben on pod-2, process 1"}}},
		},
	}
	if s.held {
		t.Guards = []api.Guard{{Group: s.name, State: "held", Since: now.Add(-12 * time.Minute), Class: s.class, Partitions: 3, Of: 3, Waiting: ptr(int64(12_400))}}
	}
	if s.settled {
		t.Open, t.Pending, t.Recent, t.Oldest, t.Newest, t.TopClass, t.Problem, t.Alerts, t.Runs = 0, 0, 0, nil, nil, "", "", nil, nil
	}
	return t
}

func (s *specimen) groups() []api.Group {
	if s.settled {
		return nil
	}
	now := past()
	return []api.Group{
		{Class: s.class, Fingerprint: s.name, Open: 1900, First: now.Add(-4 * time.Hour), Last: now.Add(-20 * time.Second), New: true, Groups: []string{s.name}, Versions: []string{s.name}, Reasons: []string{"terminal"}, Sample: s.message, Partition: 1, Offset: 5, FirstSeen: api.FirstSeen{Frame: s.name}},
		{Class: s.class, Fingerprint: "3649751aadbf4e23", Open: 2, First: now.Add(-time.Hour), Last: now.Add(-time.Hour), New: true, Sample: s.message, Partition: 1, Offset: 9},
		{Class: "http.503", Open: 188, First: now.Add(-3 * time.Hour), Last: now.Add(-2 * time.Hour)},
		{Class: "", Open: 24, First: now.Add(-9 * 24 * time.Hour), Last: now.Add(-9 * 24 * time.Hour), FailedAgain: 3, Groups: []string{"billing"}},
	}
}

func (s *specimen) letters(f *Filter) *api.Letters {
	if s.settled {
		return &api.Letters{}
	}
	page := &api.Letters{Next: "v1/orders.dlq/0:7"}
	for i := range int64(3) {
		page.Letters = append(page.Letters, api.Letter{Partition: 1, Offset: i, FailedAt: time.Now(), EnteredAt: time.Now(), Class: s.class, Fingerprint: s.name, Reason: s.name, Group: s.name, Version: s.name, State: f.State})
	}
	return page
}

// glances returns what was read of letters: of all but the last.
func (s *specimen) glances(page *api.Letters) (map[selection.Place]operate.Glance, error) {
	all := map[selection.Place]operate.Glance{}
	for i := range page.Letters[:max(len(page.Letters)-1, 0)] {
		g := operate.Glance{Message: s.message, Cut: i == 1, Attempts: 3}
		if s.role >= access.Reader {
			g.Key = api.Bytes{Text: ptr(s.value), Size: len(s.value)}
		}
		all[selection.Place{Partition: 1, Offset: int64(i)}] = g
	}
	return all, errors.New(s.message)
}

// letter returns a letter that failed again; that at offset 6 is open, and that at 7 discarded.
func (s *specimen) letter(partition int32, offset int64) *api.LetterDetail {
	now := past()
	l := &api.LetterDetail{
		Letter:  api.Letter{Partition: partition, Offset: offset, State: "failed", FailedAt: now.Add(-time.Hour), EnteredAt: now.Add(-time.Hour), Class: s.class, Fingerprint: s.name, Reason: "exhausted", Group: s.name, Version: s.name},
		Message: s.message, Stack: s.message, Frame: s.name, Attempts: 3, Original: api.Position{Topic: "orders", Partition: 1, Offset: 77}, ProducedAt: ptr(now.Add(-2 * time.Hour)),
		Redriven: &api.Redriven{Run: s.name, Count: 2, From: api.Position{Topic: "orders.dlq", Partition: 1, Offset: 2}, At: ptr(now.Add(-100 * time.Minute))},
		History: []api.Attempt{
			{Number: 2, Class: s.class, At: now.Add(-90 * time.Minute), Verdict: "retry", Message: s.message},
			{Number: 3, Call: 1, Class: s.class, At: now.Add(-90*time.Minute + 5*time.Second), Verdict: s.name, Message: s.message},
		},
		Ledger: []api.LedgerEntry{
			{State: string(dlq.Redriven), At: now.Add(-30 * time.Minute), By: s.name, Why: s.message, Run: s.name, Target: &api.Position{Topic: s.name}, Edited: []string{"headers", "value"}},
			{State: string(dlq.Failed), At: now.Add(-20 * time.Minute), Run: s.name, Class: s.class},
		},
		TraceParent: s.name, Redacted: !s.clear,
	}
	if state, other := map[int64]string{6: "", 7: "discarded"}[offset]; other {
		l.State = state
	}
	if s.role >= access.Reader {
		l.Content = &api.Content{
			Key: api.Bytes{Text: ptr(s.name), Size: len(s.name)}, Value: api.Bytes{Text: ptr(s.value), Size: len(s.value)},
			Headers: []api.Header{{Key: s.name, Value: api.Bytes{Text: ptr(s.value), Size: len(s.value)}}, {Key: "raw", Value: api.Bytes{Base64: []byte{0xff, 0}, Size: 2}}, {Key: "null"}},
		}
	}
	return l
}

func (s *specimen) series(n, most int) (all []letterindex.Series) {
	if s.settled {
		return nil
	}
	for i := range most + 1 {
		is := letterindex.Series{Class: s.class, Counts: make([]int64, n)}
		is.Counts[i%n], is.Counts[n-1] = int64(100*(i+1)), int64(i)
		all = append(all, is)
	}
	return all
}

func (s *specimen) history() *operate.History {
	if s.settled {
		return &operate.History{}
	}
	return &operate.History{
		Acts: []letterindex.Act{{State: dlq.Discarded, By: s.name, Why: s.message, First: time.Now(), Last: time.Now(), Letters: 12}},
		Prunes: []ledgerrecord.Prune{
			{At: past(), By: s.name, Why: s.message, Archive: s.name, Letters: 9, Open: 2, Discarded: 3, Error: s.message}, {At: past(), Letters: 1, Deleted: past()},
		},
		RuleActs: []operate.RuleAct{{Rule: s.name, Paused: true, By: s.name, Why: s.message, At: past()}, {Rule: s.name, By: s.name, At: past()}},
	}
}

func (s *specimen) plan() *api.Plan {
	if s.settled {
		return &api.Plan{Topic: "orders.dlq"}
	}
	return &api.Plan{
		Topic: "orders.dlq", Letters: 1902, ByClass: map[string]int64{s.class: 1902}, ByGroup: map[string]int64{s.name: 1902}, ByPartition: map[string]int64{"0": 1902},
		Targets: map[string]int64{s.name: 1902}, SeenBy: []string{s.name}, Skipped: map[string]int64{s.message: 3}, Warnings: []string{s.message}, SendingMs: 38 * 60 * 1000,
	}
}

// runs returns a run that goes on, and one that was aborted an hour ago.
func (s *specimen) runs() []api.Run {
	if s.settled || s.empty {
		return nil
	}
	now := past()
	ended := now.Add(-time.Hour)
	return []api.Run{{
		Topic: "orders.dlq", ID: s.name, State: "sending", Waiting: s.message, By: s.name, Why: s.message, Owner: s.name, Started: now.Add(-time.Minute), Heartbeat: now, Rate: 20,
		Pace: api.Pace{Rate: 50, MaxLag: 1000, WindowMs: 30000, RampMs: 30000, Canary: 1, TolerateShare: 0.1}, Notices: []string{s.message}, Silent: s.silent,
		Counts: api.Counts{Selected: 1902, Sent: 1000, Succeeded: 900, Failed: 40, FailedByClass: map[string]int64{s.class: 40}, Pending: 60, Skipped: map[string]int64{s.message: 2}},
	}, {
		Topic: "orders.dlq", ID: "r0", State: "aborted", Cause: s.message, By: "ada", Started: ended.Add(-time.Hour), Ended: &ended, Counts: api.Counts{Selected: 5, Sent: 1, Failed: 1},
	}}
}

func (s *specimen) ruleOn() api.RuleOnTopic {
	on := api.RuleOnTopic{Topic: "orders.dlq", Would: "nothing", Why: s.message, Letters: 7, Read: 12, Problem: "where failed on 1 letter", Open: true, Until: ptr(past().Add(time.Hour)), Cause: s.message}
	if s.paused {
		on.Paused = &api.Paused{By: s.name, At: past().Add(-time.Hour), Why: s.message}
	}
	return on
}

func (s *specimen) rules() []api.Rule {
	if s.settled || s.empty {
		return nil
	}
	return []api.Rule{
		{Name: s.name, Topics: s.name, Classes: []string{s.class}, Groups: []string{s.name}, Filter: api.Filter{Header: []string{"job-type=" + s.name}, Where: s.message, Since: past()}, Times: []string{s.name}, Zone: s.name, CoolDownMs: 600_000, On: []api.RuleOnTopic{s.ruleOn()}},
		{Name: "for none", Topics: "*"},
	}
}

func (s *specimen) ruleHistory() []api.RuleEvent {
	if s.settled {
		return nil
	}
	return []api.RuleEvent{{Topic: "orders.dlq", At: past(), What: "redrive", Run: s.name, Why: s.message, End: s.message}, {Topic: "bills.dlq", What: "of another topic"}, {Topic: "orders.dlq", At: past(), What: "paused", By: s.name}}
}

// exhibit is a page of a specimen before it is rendered.
type exhibit struct {
	page     page
	template string
	model    any
}

// above are the links of a page to those around it.
func above(r *visit) []link {
	return []link{{"Topics", r.base + "/"}, {"orders.dlq", topicPath(r.base, "orders.dlq")}}
}

// pages returns each page of the specimen, by the pattern of its address.
func (s *specimen) pages() map[string]func(*visit) (exhibit, error) {
	role, topic := s.role.String(), s.topic()
	return map[string]func(*visit) (exhibit, error){
		"/{$}": func(r *visit) (exhibit, error) {
			var rows []overviewRow
			if !s.empty {
				rows = append(rows, newOverviewRow(&topic, s.series(sparkTimes, 0), r.base, r.now))
			}
			return exhibit{page{Title: "Topics", Section: "topics", Heading: "Dead-letter topics"}, "overview", newOverviewModel("local", rows)}, nil
		},
		"/topics/{topic}": func(r *visit) (exhibit, error) {
			f, err := parseFilter(r.query, r.now)
			if err != nil {
				return exhibit{}, err
			}
			path := topicPath(r.base, "orders.dlq")
			m := newIncidentModel(&topic, &f, path, r.now)
			if f.State == "" && f.Where == "" {
				m.group(s.groups(), &f, r.now)
			}
			w := windowOf(&f, m.newest, time.Time{}, r.now)
			m.draw(w, s.series(w.n, mostSeries), &f, r.now)
			m.Picture.mark(w, []letterindex.Release{{Version: s.name, First: r.now.Add(-time.Hour)}}, topic.Runs, path, r.now)
			if !s.settled {
				m.Began = beginningOf(&s.letter(1, 5).Letter, s.name, path, &f, r.now)
			}
			all := s.letters(&f)
			glances, unread := s.glances(all)
			m.list(all, glances, unread, &f, r.now)
			return exhibit{page{Title: "orders.dlq", Section: "topics", Heading: "orders.dlq", Above: above(r)[:1], Role: role, Form: newForm(&f, path, s.role >= access.Reader, s.groups())}, "incident", m}, nil
		},
		"/topics/{topic}/letters/{partition}/{offset}": func(r *visit) (exhibit, error) {
			partition, offset, err := placeIn(r)
			if err != nil {
				return exhibit{}, err
			}
			f, err := parseFilter(r.query, r.now)
			if err != nil {
				return exhibit{}, err
			}
			path := topicPath(r.base, "orders.dlq")
			m := newLetterModel(s.letter(partition, offset), "orders.dlq", path, r.query.Get("value"), &f, r.now)
			m.act(s.role)
			m.People = newPeopleModel(&topic.Topic)
			m.Before, m.After = letterLink(path, &selection.Place{Partition: 1, Offset: 9}, &f), letterLink(path, nil, &f)
			name := r.PathValue("partition") + "/" + r.PathValue("offset")
			return exhibit{page{Title: "letter " + name + " · orders.dlq", Section: "topics", Heading: "Letter " + name, Above: above(r), Role: role}, "letter", m}, nil
		},
		"/topics/{topic}/runs/{run}": func(r *visit) (exhibit, error) {
			id := r.PathValue("run")
			all := s.runs()
			i := slices.IndexFunc(all, func(run api.Run) bool { return run.ID == id })
			if i < 0 {
				return exhibit{}, &pageError{http.StatusNotFound, "there is no run " + id}
			}
			return exhibit{
				page{Title: "Run " + id + " · orders.dlq", Section: "runs", Heading: "Run " + id, Above: above(r), Role: role, run: runKey("orders.dlq", id)},
				"run", newRunModel(&all[i], r.base, s.role, new(meter), r.now),
			}, nil
		},
		"/runs": func(r *visit) (exhibit, error) {
			return exhibit{page{Title: "Runs", Section: "runs", Heading: "Runs"}, "runs", newRunsModel(s.runs(), r.base, r.now)}, nil
		},
		"/rules": func(r *visit) (exhibit, error) {
			return exhibit{page{Title: "Rules", Section: "rules", Heading: "Rules"}, "rules", newRulesModel(s.rules(), r.base, r.now)}, nil
		},
		"/audit": func(r *visit) (exhibit, error) {
			var rows []auditRow
			var visible []string
			if !s.empty {
				rows, visible = auditRows(&topic, s.history(), r.base, r.now), []string{"orders.dlq"}
			}
			return exhibit{page{Title: "Audit", Section: "audit", Heading: "Who did what"}, "audit", newAuditModel(rows, r.base+"/audit", r.query.Get("topic"), r.query.Get("by"), visible)}, nil
		},
		"/rules/{rule}/topics/{topic}": func(r *visit) (exhibit, error) {
			rule, on := r.PathValue("rule"), s.ruleOn()
			head := page{Title: "Rule " + rule + " · orders.dlq", Section: "rules", Heading: "Rule " + rule, Above: []link{{"Rules", r.base + "/rules"}, above(r)[1]}, Role: role}
			return exhibit{head, "rule", newRuleTopicModel(rule, &on, s.ruleHistory(), r.base, s.role, r.now)}, nil
		},
		"/topics/{topic}/redrive": func(r *visit) (exhibit, error) {
			a, err := s.subject(r, "/redrive")
			if err != nil {
				return exhibit{}, err
			}
			options, chosen, all, err := optionsOf(r.query)
			m := newRedriveModel(a, chosen, all)
			if edits(r.query) {
				_, form, _, _ := editOf(r.query, s.letter(0, 6))
				m.edit(form)
				m.Changes = []*changes{{Letter: "1/5", Note: s.message}, {Letter: "1/4", Note: s.message}}
			}
			if m.Key = "k"; err != nil {
				m.Problem = err.Error()
			} else {
				m.Plan = newPlanModel(s.plan(), &topic, &options.Pace)
				m.command(s.message, m.Plan, &api.RunRequest{Filter: a.filter, RunOptions: options})
			}
			return s.answer(m.answer(a, err))
		},
		"/topics/{topic}/letters/{partition}/{offset}/redrive": func(r *visit) (exhibit, error) {
			a, err := s.subject(r, "/redrive")
			if err != nil {
				return exhibit{}, err
			}
			_, chosen, all, err := optionsOf(r.query)
			m := newRedriveModel(a, chosen, all)
			l := s.letter(a.partition, a.offset)
			_, form, _, _ := editOf(url.Values{}, l)
			m.edit(form)
			if l.Content != nil {
				changed := *l.Content
				changed.Headers = slices.Clone(changed.Headers[:1])
				m.Changes = []*changes{changesOf(l.Content, &changed)}
			}
			m.Plan = newPlanModel(s.plan(), &topic, &api.Pace{})
			return s.answer(m.answer(a, err))
		},
		"/topics/{topic}/whom": func(r *visit) (exhibit, error) {
			f, err := parseFilter(r.query, r.now)
			m := newWhomModel(s.message, topicPath(r.base, "orders.dlq"), &f, r.query.Get("by"))
			if m.By != "" {
				m.Counts = newWhomCounts(&api.Values{Counted: 9, Top: []api.ValueCount{{Value: s.value, Open: 5}, {Value: s.name, Open: 2}}, Others: 1, Without: 1, Hidden: 1, Problem: s.message})
			}
			return exhibit{page{Title: "Whom · orders.dlq", Section: "topics", Heading: "Whom it hurts", Above: above(r), Role: role}, "whom", m}, err
		},
		"/topics/{topic}/discard":                              s.resolved("/discard"),
		"/topics/{topic}/letters/{partition}/{offset}/discard": s.resolved("/discard"),
		"/topics/{topic}/letters/{partition}/{offset}/reopen":  s.resolved("/reopen"),
	}
}

func (s *specimen) subject(r *visit, act string) (*subject, error) {
	if r.PathValue("offset") != "" {
		return oneSubject(r, act, s.role)
	}
	return openSubject(r, act, s.role, func() (time.Time, error) { return r.now, nil })
}

func (s *specimen) answer(a *answer) (exhibit, error) {
	return exhibit{a.page, a.template, a.model}, nil
}

// resolved returns the page that discards letters, or reopens one.
func (s *specimen) resolved(act string) func(*visit) (exhibit, error) {
	return func(r *visit) (exhibit, error) {
		a, err := s.subject(r, act)
		if err != nil {
			return exhibit{}, err
		}
		if act == "/reopen" {
			return s.answer(newReopenModel(a, "").answer(&site{}, r, a, "Reopen", "Reopen a letter", nil))
		}
		letters := s.plan().Letters
		if a.single {
			letters = 1
		}
		return s.answer(newDiscardModel(a, letters, "").answer(&site{}, r, a, "Discard", "Discard letters", nil))
	}
}

// ServeHTTP answers with a page of the specimen, as a console does with what it has read.
func (s *specimen) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	mux := http.NewServeMux()
	show := func(of func(*visit) (exhibit, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			r := &visit{Request: req, who: &access.Identity{Name: "local"}, query: req.URL.Query(), base: baseOf(req), now: time.Now()}
			is, err := of(r)
			if err != nil {
				is = exhibit{page{Title: "Bad Request"}, "message", struct{ Heading, Text, Base string }{"Bad Request", err.Error(), r.base}}
			}
			s.write(w, r, &is)
		}
	}
	for pattern, of := range s.pages() {
		mux.HandleFunc(pattern, show(of))
	}
	mux.HandleFunc("/", show(func(*visit) (exhibit, error) { return exhibit{}, errNoPage }))
	mux.ServeHTTP(w, req)
}

func (s *specimen) write(w http.ResponseWriter, r *visit, is *exhibit) {
	v := viewOf(is.template, "", func() uint64 { return 0 }, func(context.Context, time.Time) (any, error) { return is.model, nil })
	live, err := view.NewViews().Get(r.Context(), &v)
	if slices.Contains([]string{"redrive", "resolve", "rule", "message", "whom"}, is.template) {
		live = view.Rendering{HTML: live.HTML}
	}
	cards, err2 := execute("cards", newCardsModel(s.runs(), is.page.run, r.base, map[string]access.Role{"orders.dlq": s.role}, time.Time{}, new(meter), r.now))
	l := newLayout(r, &is.page, live)
	l.Runs, l.RunsHash = template.HTML(cards), "seen"
	text, err3 := execute("layout", l)
	if err := errors.Join(err, err2, err3); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(text)
}
