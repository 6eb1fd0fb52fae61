package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// auditModel is the model of the template "audit".
type auditModel struct {
	Rows   []auditRow
	Topics []choice
	// Topic is the one that is shown; empty for all.
	Topic string
	By    string
	Clear string
	// More reports that there are older ones that are not shown.
	More bool
}

// auditRow is an act of a person, a rule or the server.
type auditRow struct {
	Topic, TopicLink string
	At               moment
	By, ByLink       string
	What, Outcome    string
	Why              string
	Red              bool
	Letters          int64
	// About is the run or the rule that it was about; empty if it was about neither.
	About, AboutLink string

	at time.Time
}

// mostAudited bounds the rows of the page.
const mostAudited = 200

// auditPage is the page of who did what.
func auditPage(d *operate.Desk, r *visit) (*page, error) {
	topic, by := r.query.Get("topic"), r.query.Get("by")
	if len(by) > mostLength || len(topic) > mostLength {
		return nil, badInput("the address is too long")
	}
	visible := topicsOf(d, r)
	names := visible
	if topic != "" {
		if _, err := roleOn(d, r, topic); err != nil {
			return nil, err
		}
		names = []string{topic}
	}
	return &page{
		Title: "Audit", Section: "audit", Heading: "Who did what",
		live: viewOf("audit", view.KeyOf(append([]string{r.base, topic, by}, visible...)...), versionOf(d, names), func(ctx context.Context, now time.Time) (any, error) {
			var rows []auditRow
			for _, name := range names {
				t, err := operate.ViewTopic(ctx, d, r.who, name)
				if err != nil {
					return nil, err
				}
				did, err := operate.TopicHistory(ctx, d, r.who, name)
				if err != nil {
					return nil, err
				}
				rows = append(rows, auditRows(&t, &did, r.base, now)...)
			}
			return newAuditModel(rows, r.base+"/audit", topic, by, visible), nil
		}),
	}, nil
}

// newAuditModel returns the page of what was done on topics: all of it, or what one person did.
// path is its address, topic the one that is shown, and visible are those that can be.
func newAuditModel(rows []auditRow, path, topic, by string, visible []string) auditModel {
	link := func(topic, by string) string {
		q := url.Values{}
		if topic != "" {
			q.Set("topic", topic)
		}
		if by != "" {
			q.Set("by", by)
		}
		if len(q) == 0 {
			return path
		}
		return path + "?" + q.Encode()
	}
	m := auditModel{Rows: rows, Topic: topic, By: by, Clear: path}
	m.Topics = append(m.Topics, choice{"all topics", link("", by), topic == ""})
	for _, name := range visible {
		m.Topics = append(m.Topics, choice{name, link(name, by), topic == name})
	}
	m.Rows = slices.DeleteFunc(m.Rows, func(a auditRow) bool { return by != "" && a.By != by })
	slices.SortStableFunc(m.Rows, func(a, b auditRow) int { return b.at.Compare(a.at) })
	if m.More = len(m.Rows) > mostAudited; m.More {
		m.Rows = m.Rows[:mostAudited]
	}
	for i := range m.Rows {
		m.Rows[i].ByLink = link(topic, m.Rows[i].By)
	}
	return m
}

// auditRows returns what people, rules and retention did on a topic.
func auditRows(t *operate.Topic, did *operate.History, base string, now time.Time) (rows []auditRow) {
	name := t.Topic.Topic
	path := topicPath(base, name)
	for _, a := range did.Acts {
		rows = append(rows, auditRow{
			Topic: name, TopicLink: path, At: momentOf(a.Last, now), By: a.By, What: actWords(a.State), Why: a.Why, Letters: a.Letters, at: a.Last,
		})
	}
	for i := range t.Runs {
		run := &t.Runs[i]
		rows = append(rows, auditRow{
			Topic: name, TopicLink: path, At: momentOf(run.Started, now), By: run.By, What: "began a run", Why: run.Why, Letters: run.Counts.Selected, About: run.ID, AboutLink: runPath(path, run.ID),
			Outcome: outcomeWords(run), Red: run.State == redrive.Aborted, at: run.Started,
		})
		for _, act := range actsOnRun(run) {
			rows = append(rows, auditRow{
				Topic: name, TopicLink: path, At: momentOf(act.at, now), By: act.by, What: act.what, Why: act.why, Outcome: act.process, About: run.ID, AboutLink: runPath(path, run.ID), at: act.at,
			})
		}
	}
	for i := range did.Prunes {
		p := &did.Prunes[i]
		rows = append(rows, auditRow{
			Topic: name, TopicLink: path, At: momentOf(p.At, now), By: p.By, What: "deleted", Why: p.Why, Letters: p.Letters, at: p.At,
			Outcome: prunedWords(p), Red: p.Error != "",
		})
	}
	for _, a := range did.RuleActs {
		row := auditRow{Topic: name, TopicLink: path, At: momentOf(a.At, now), By: a.By, What: "let a rule go on", Why: a.Why, at: a.At, About: a.Rule, AboutLink: rulePath(base, a.Rule, name)}
		if a.Paused {
			row.What = "paused a rule"
		}
		rows = append(rows, row)
	}
	return rows
}

// prunedWords says which letters were deleted, and what became of them.
func prunedWords(p *ledgerrecord.Prune) string {
	var all []string
	for _, of := range []struct {
		n    int64
		word string
	}{{p.Open, "open or without an outcome"}, {p.Discarded, "discarded"}} {
		if of.n > 0 {
			all = append(all, number.Format(of.n)+" "+of.word)
		}
	}
	switch {
	case p.Archive != "":
		all = append(all, "archived in "+p.Archive)
	default:
		all = append(all, "without an archive")
	}
	switch {
	case p.Error != "":
		all = append(all, "it failed, and some may be there still: "+p.Error)
	case p.Deleted.IsZero():
		all = append(all, "announced; nobody recorded its end")
	}
	return strings.Join(all, " · ")
}

// actWords says what was done by whoever wrote a state.
func actWords(s dlq.State) string {
	switch s {
	case dlq.Discarded:
		return "discarded"
	case dlq.Compensated:
		return "discarded as compensated"
	case dlq.Reopened:
		return "reopened"
	}
	return fmt.Sprintf("recorded as %s", s)
}

// outcomeWords says how a run ended, or how far it is.
func outcomeWords(o *redrive.Outcome) string {
	says := runText(o)
	if o.Cause != "" {
		says += " · " + o.Cause
	}
	return says
}
