package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// overviewModel is the model of the template "overview".
type overviewModel struct {
	Who     string
	Summary []phrase
	Rows    []overviewRow
	// Nothing reports that there is no topic at all that the sender may see.
	Nothing bool
}

// overviewRow is a topic in the overview.
type overviewRow struct {
	operate.Topic
	Link    string
	Summary []phrase
	Spark   sparkline
	// TopLink selects the class with the most open letters.
	TopLink string
	Alerts  []alert
	Oldest  moment
	Growing bool
}

// alert is an exceeded threshold as a page shows it.
type alert struct {
	Severity, Text string
	Red            bool
}

func alertsOf(t *operate.Topic) (all []alert) {
	for _, a := range t.Alerts {
		all = append(all, alert{string(a.Severity), a.Text, a.Severity == incident.Page})
	}
	// page before warn
	slices.SortStableFunc(all, func(a, b alert) int { return cmp.Compare(a.Severity, b.Severity) })
	return all
}

// overviewPage is the page of all topics.
func overviewPage(d *operate.Desk, r *visit) (*page, error) {
	who, base, names := r.who, r.base, topicsOf(d, r)
	key := view.KeyOf(append([]string{"topics", base, who.Rights()}, names...)...)
	if len(names) == 0 {
		key = view.KeyOf("nothing for", base, who.Name) // the page has the name
	}
	return &page{
		Title: "Topics", Section: "topics", Heading: "Dead-letter topics",
		live: viewOf("overview", key, versionOf(d, names), func(ctx context.Context, now time.Time) (any, error) {
			var rows []overviewRow
			for _, t := range operate.ViewTopics(d, who) {
				w := sparkWindow(now)
				series, err := operate.Times(ctx, d, who, t.Topic.Topic, &api.Filter{}, w.from, w.by, w.n, 0)
				if err != nil {
					return nil, err
				}
				rows = append(rows, newOverviewRow(&t, series, base, now))
			}
			return newOverviewModel(who.Name, rows), nil
		}),
	}, nil
}

// newOverviewRow returns the row of a topic. series are its failures in the window of a sparkline.
func newOverviewRow(t *operate.Topic, series []letterindex.Series, base string, now time.Time) overviewRow {
	row := overviewRow{
		Topic: *t, Link: topicPath(base, t.Topic.Topic), Summary: sentence(t, now), Spark: newSparkline(series), Alerts: alertsOf(t),
		Oldest: momentAt(t.Oldest, now), Growing: isGrowing(t, now),
	}
	row.TopLink = row.Link + (&Filter{Classes: []string{t.TopClass}}).query()
	return row
}

// newOverviewModel returns the page of the rows of topics, for a sender with a name.
func newOverviewModel(who string, rows []overviewRow) overviewModel {
	slices.SortFunc(rows, func(a, b overviewRow) int {
		return cmp.Or(cmp.Compare(b.severity(), a.severity()), cmp.Compare(b.Open, a.Open), cmp.Compare(a.Topic.Topic.Topic, b.Topic.Topic.Topic))
	})
	return overviewModel{Who: who, Summary: overviewPhrases(rows), Rows: rows, Nothing: len(rows) == 0}
}

// severity orders topics: those that need a person come first.
func (r *overviewRow) severity() int {
	switch {
	case len(r.Alerts) > 0 && r.Alerts[0].Red:
		return 2
	case len(r.Alerts)+len(r.Guards)+len(r.Stalled) > 0:
		return 1
	}
	return 0
}

// overviewPhrases returns in words how all topics are.
func overviewPhrases(rows []overviewRow) (all []phrase) {
	var open, growing, guarded, stalled, beyond, uncounted, silent, letters int64
	count := func(n *int64, so bool) {
		if so {
			*n++
		}
	}
	for i := range rows {
		r := &rows[i]
		letters += r.Open
		count(&uncounted, r.Known == nil)
		count(&open, r.Open > 0)
		count(&growing, r.Open > 0 && r.Growing)
		count(&guarded, len(r.Guards) > 0)
		count(&stalled, len(r.Stalled) > 0)
		count(&beyond, len(r.Alerts) > 0)
		count(&silent, r.Silent)
	}
	add := func(n int64, red bool, text string) {
		if n > 0 {
			all = append(all, phrase{Text: text, Red: red})
		}
	}
	switch {
	case len(rows) == 0:
		return nil
	case open > 0:
		add(open, true, fmt.Sprintf("%s open in %s", number.Format(letters), number.Of(open, "topic")))
		if add(growing, true, number.Format(growing)+" growing"); growing+silent+guarded+stalled == 0 {
			all = append(all, phrase{Text: "none growing"})
		}
	case uncounted+silent+guarded+stalled == 0:
		all = append(all, phrase{Text: "all settled: no open letters in " + number.Of(int64(len(rows)), "topic")})
	}
	add(guarded, true, "records held or strained in "+number.Of(guarded, "topic"))
	add(stalled, true, "consumers of "+number.Of(stalled, "topic")+" do not run, or not all")
	add(beyond, true, number.Format(beyond)+" beyond a threshold")
	add(silent, true, "nothing comes of "+number.Of(silent, "topic"))
	add(uncounted, false, number.Format(uncounted)+" still being counted")
	return all
}
