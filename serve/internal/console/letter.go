package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// letterModel is the model of the template "letter".
type letterModel struct {
	*api.LetterDetail
	Topic, Path string
	Summary     []phrase
	People      *peopleModel // of its topic; nil without
	Steps       []step
	// MayRead reports whether the content is shown; Role is the one that it takes.
	MayRead bool
	Key     content
	Value   content
	Views   []choice
	Headers []headerRow
	// More is how many more headers there are.
	More int
	// Same selects the letters of the same group; empty if no filter does.
	Same, Stack string
	// Acts are what can be done to it, and CannotAct is why nothing can.
	Acts      []link
	CannotAct string
	// Before and After are the letters beside it in the list that it came from; empty for none.
	Before, After link
	Commands      []command
}

// step is one thing that happened to a record.
type step struct {
	What string
	At   moment
	// After is how long after the step before it this was; empty if that is not known.
	After string
	// Facts are known about it, and Message what a failure or a person said.
	Facts   []string
	Class   string
	Message string
	Link    *link
	Red     bool
	Good    bool
	// Timeless is a step that has no time of its own.
	Timeless bool

	at time.Time
}

// letterPage is the page of one letter.
func letterPage(d *operate.Desk, r *visit) (*page, error) {
	base, name := r.base, r.PathValue("topic")
	partition, offset, err := placeIn(r)
	if err != nil {
		return nil, err
	}
	role, err := roleOn(d, r, name)
	if err != nil {
		return nil, err
	}
	as := r.query.Get("value")
	if as != "" && as != asJSON && as != asText && as != asHex {
		return nil, badInput("a value is not shown as %q: %s, %s or %s", as, asJSON, asText, asHex)
	}
	f, err := parseFilter(r.query, r.now)
	if err != nil {
		return nil, err
	}
	path := topicPath(base, name)
	title := fmt.Sprintf("letter %d/%d", partition, offset)
	key := view.KeyOf(base, name, role.String(), strconv.Itoa(int(partition)), strconv.FormatInt(offset, 10), as, f.query())
	return &page{
		Title: title + " · " + name, Section: "topics", Heading: fmt.Sprintf("Letter %d/%d", partition, offset), Above: []link{{"Topics", base + "/"}, {name, path + f.query()}}, Role: role.String(),
		live: viewOf("letter", key, func() uint64 { return operate.LetterVersion(d, name, partition, offset) }, func(ctx context.Context, now time.Time) (any, error) {
			at := &request.Letter{Topic: request.Topic{Topic: name}, Partition: partition, Offset: offset}
			l, err := operate.GetLetter(ctx, d, r.who, at)
			if err != nil {
				return nil, err
			}
			f, err := parseFilter(r.query, now)
			if err != nil {
				return nil, err
			}
			filter := f.api()
			before, after, err := operate.Beside(ctx, d, r.who, at, &filter)
			if err != nil {
				return nil, err
			}
			topic, err := operate.GetTopic(ctx, d, r.who, &at.Topic)
			if err != nil {
				return nil, err
			}
			m := newLetterModel(&l, name, path, as, &f, now)
			m.act(role)
			m.People = newPeopleModel(&topic)
			m.Before, m.After = letterLink(path, before, &f), letterLink(path, after, &f)
			return m, nil
		}).Reading(),
	}, nil
}

// letterLink leads to a letter of a filter's list; empty for none.
func letterLink(path string, at *selection.Place, f *Filter) link {
	if at == nil {
		return link{}
	}
	return link{letterName(at.Partition, at.Offset), letterPath(path, at.Partition, at.Offset) + f.query()}
}

func newLetterModel(l *api.LetterDetail, topic, path, as string, f *Filter, now time.Time) *letterModel {
	same := Filter{Classes: []string{l.Class}, Fingerprints: []string{l.Fingerprint}}
	m := &letterModel{LetterDetail: l, Topic: topic, Path: path, Stack: l.Stack, MayRead: l.Content != nil}
	if l.Class != "" || l.Fingerprint != "" {
		m.Same = path + same.query()
	}
	m.Summary, m.Commands = letterPhrases(l, now), letterCommands(topic, l.Partition, l.Offset)
	m.Steps = stepsOf(l, path, now)
	if l.Content == nil {
		return m
	}
	m.Key = decodedOf(l.Content.Key, asText, mostKeyText)
	m.Value = decodedOf(l.Content.Value, as, mostValue)
	here := letterPath(path, l.Partition, l.Offset)
	for _, way := range m.Value.Ways {
		m.Views = append(m.Views, choice{way, here + f.with("value", way) + "#value", way == m.Value.As})
	}
	m.Headers, m.More = headerRows(l.Content)
	return m
}

// act adds what a sender with a role can do to the letter.
func (m *letterModel) act(role access.Role) {
	here := letterPath(m.Path, m.Partition, m.Offset)
	switch {
	case role < access.Operator:
		m.CannotAct = takesRole(access.Operator, m.Topic)
	case isOpen(m.State):
		m.Acts = []link{{"Redrive…", here + "/redrive"}, {"Discard…", here + "/discard"}}
	case canReopen(m.State):
		m.Acts = []link{{"Reopen…", here + "/reopen"}}
	}
}

// stepsOf returns what happened to a record, from its beginning on.
func stepsOf(l *api.LetterDetail, path string, now time.Time) []step {
	produced := step{What: "Produced", Facts: []string{place(l.Original)}}
	if l.ProducedAt != nil {
		produced.at = *l.ProducedAt
	}
	var calls []step
	if l.Redriven != nil {
		s := step{
			What: "Brought back", Facts: []string{"by run " + visible(l.Redriven.Run), number.Of(int64(l.Redriven.Count), "redrive") + " so far"},
			Link: &link{"the earlier letter", letterPath(path, l.Redriven.From.Partition, l.Redriven.From.Offset)},
		}
		if l.Redriven.At != nil {
			s.at = *l.Redriven.At
		}
		calls = append(calls, s)
	}
	for _, a := range l.History {
		s := step{What: fmt.Sprintf("Attempt %d", a.Number), at: a.At, Class: a.Class, Message: a.Message, Red: true}
		if a.Call > 0 {
			s.What += fmt.Sprintf(", call %d", a.Call)
		}
		if a.Verdict != "" {
			s.Facts = append(s.Facts, a.Verdict)
		}
		calls = append(calls, s)
	}
	slices.SortStableFunc(calls, func(a, b step) int { return a.at.Compare(b.at) })
	if missing := l.Attempts - attemptsIn(l.History); missing > 0 {
		calls = append([]step{{What: number.Of(int64(missing), "earlier attempt"), Facts: []string{missingWords(l.Reason)}, Timeless: true}}, calls...)
	}
	all := append(append([]step{produced}, calls...), deadStep(l))
	for _, e := range l.Ledger {
		all = append(all, entryStep(e))
	}
	if more := len(all) - mostListed; more > 0 {
		all = append([]step{produced, {What: number.Of(int64(more), "step") + " more", Timeless: true}}, all[1+more:]...)
	}
	var before time.Time
	for i := range all {
		s := &all[i]
		s.At = momentOf(s.at, now)
		if !s.at.IsZero() {
			if !before.IsZero() && !s.at.Before(before) {
				s.After = span(s.at.Sub(before))
			}
			before = s.at
		}
	}
	return all
}

// deadStep says how a record became a letter.
func deadStep(l *api.LetterDetail) step {
	dead := step{What: "Dead-lettered", at: l.EnteredAt, Class: l.Class, Message: l.Message, Red: isOpen(l.State)}
	if words, ok := reasonWords[headers.Reason(l.Reason)]; ok {
		dead.Facts = append(dead.Facts, words)
	}
	if l.Dialect != "" {
		dead.Facts = append(dead.Facts, "as "+l.Dialect+" writes it")
	}
	if l.Dialect == "" || l.Attempts > 0 { // else it does not say them
		dead.Facts = append(dead.Facts, fmt.Sprintf("after %s", number.Of(int64(l.Attempts), "attempt")))
	}
	for name, value := range map[string]string{"group": l.Group, "version": l.Version, "environment": l.Environment, "host": l.Host} {
		if value != "" {
			dead.Facts = append(dead.Facts, name+" "+visible(value))
		}
	}
	slices.Sort(dead.Facts[1:])
	return dead
}

// attemptsIn returns how many deliveries of the last life of a record are in its history.
func attemptsIn(history []api.Attempt) int {
	numbers := map[int]bool{}
	for i := len(history) - 1; i >= 0; i-- {
		if i+1 < len(history) && history[i].Number > history[i+1].Number {
			break // an earlier life
		}
		numbers[history[i].Number] = true
	}
	return len(numbers)
}

// entryStep is what an entry of the ledger says.
func entryStep(e api.LedgerEntry) step {
	s := step{at: e.At, Class: e.Class, Message: e.Why}
	switch state := dlq.State(e.State); state {
	case "":
		s.What = "Entry withdrawn"
	case dlq.Redriven:
		s.What = "Brought back"
	case dlq.Succeeded:
		s.What, s.Good = "Succeeded", true
	case dlq.Failed:
		s.What, s.Red = "Failed again", true
	default:
		s.What = strings.ToUpper(e.State[:1]) + e.State[1:]
		if words := stateWords[state]; words != "" {
			s.Facts = append(s.Facts, words)
		}
	}
	if e.Target != nil {
		s.Facts = append(s.Facts, "to "+place(*e.Target))
	}
	if e.Run != "" {
		s.Facts = append(s.Facts, "run "+visible(e.Run))
	}
	if e.By != "" {
		s.Facts = append(s.Facts, "by "+visible(e.By))
	}
	if len(e.Edited) > 0 {
		s.Facts = append(s.Facts, "changed: "+visible(list(e.Edited)))
	}
	return s
}
