package incident_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/incident"
)

// An incident begins once, is sent once more if it becomes urgent, and is over a minute after its
// alert. An alert that is away for less does not end it.
func TestFollower_See(t *testing.T) {
	t.Parallel()
	warn := &incident.Alert{Severity: incident.Warn, Text: "12 letters open"}
	page := &incident.Alert{Severity: incident.Page, Text: "120 letters open"}
	began := time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)
	var f incident.Follower
	for i, step := range []struct {
		after   time.Duration
		alert   *incident.Alert
		changed bool
		on      bool
	}{
		{0, nil, false, false},
		{time.Second, warn, true, true},
		{2 * time.Second, warn, false, true},
		{3 * time.Second, page, true, true},
		{4 * time.Second, warn, false, true}, // it was urgent
		{10 * time.Second, nil, false, true},
		{40 * time.Second, warn, false, true},
		{50 * time.Second, nil, false, true},
		{109 * time.Second, nil, false, true},
		{110 * time.Second, nil, true, false},
		{111 * time.Second, nil, false, false},
		{112 * time.Second, warn, true, true},
	} {
		if changed := f.Observe(began.Add(step.after), step.alert); changed != step.changed || f.On() != step.on {
			t.Errorf("step %d, after %v: changed %v, on %v; want %v, %v", i, step.after, changed, f.On(), step.changed, step.on)
		}
		if i == 3 && (f.Severity != incident.Page || f.Text != page.Text) {
			t.Errorf("it is %q, %q", f.Severity, f.Text)
		}
	}
}

// What keeps an alert away without making anything better delays the end, and the minute before it
// begins anew.
func TestFollower_Stay(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)
	var f incident.Follower
	f.Stay()
	f.Observe(began, &incident.Alert{Severity: incident.Warn, Text: "60 letters came within 5m"})
	f.Observe(began.Add(time.Minute), nil)
	f.Stay()
	if f.Observe(began.Add(10*time.Minute), nil); !f.On() {
		t.Error("it is over at once")
	}
	if f.Observe(began.Add(11*time.Minute), nil); f.On() {
		t.Error("it is not over after a minute")
	}
}

// What one server notes, another one reads.
func TestState_SurvivesItsNote(t *testing.T) {
	t.Parallel()
	s := incident.State{V: 1, Severity: incident.Page, Text: "x", Since: time.Unix(1, 0).UTC(), Over: time.Unix(2, 0).UTC(), Parts: []string{"a"}, AcceptedBy: []string{"pager"}, Addressed: []string{"pager", "chat"}, GivenUp: map[string]string{"chat": "it answered 404"}}
	if got, err := incident.Parse(s.Note()); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v became %+v, %v", s, got, err)
	}
	for _, broken := range []string{"", "{", `{"v":2}`} {
		if got, err := incident.Parse([]byte(broken)); err == nil || got.On() {
			t.Errorf("%q gives %+v, %v", broken, got, err)
		}
	}
	if got, err := incident.Parse(nil); err != nil || got.On() {
		t.Errorf("without a note: %+v, %v", got, err)
	}
}

// People want to know of each new class: an incident that gets a part is sent again, but no more
// than once a minute, however many come.
func TestFollower_TellsOfNewPartsOnceAMinute(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)
	var f incident.Follower
	for i, step := range []struct {
		after   time.Duration
		parts   []string
		changed bool
	}{
		{0, []string{"decode"}, true},
		{10 * time.Second, []string{"decode", "http.503"}, false},
		{20 * time.Second, []string{"decode", "http.503", "tax"}, false},
		{60 * time.Second, []string{"decode", "http.503", "tax"}, true},
		{70 * time.Second, []string{"decode", "http.503", "tax"}, false},
		{200 * time.Second, []string{"tax"}, false}, // fewer are no news
		{210 * time.Second, []string{"decode"}, false},
		{220 * time.Second, []string{"timeout"}, true},
	} {
		f.AllNotified, f.AcceptedBy = true, []string{"pager"}
		alert := &incident.Alert{Severity: incident.Warn, Text: "new", Parts: step.parts}
		if changed := f.Observe(began.Add(step.after), alert); changed != step.changed {
			t.Errorf("step %d, after %v with %v: changed %v", i, step.after, step.parts, changed)
		}
		if f.AllNotified == step.changed || step.changed && f.AcceptedBy != nil {
			t.Errorf("step %d: AllNotified is %v, AcceptedBy %v", i, f.AllNotified, f.AcceptedBy)
		}
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = string(rune('a' + i))
	}
	f.Observe(began.Add(time.Hour), &incident.Alert{Severity: incident.Warn, Parts: many})
	if len(f.Parts) != 100 || f.Observe(began.Add(2*time.Hour), &incident.Alert{Severity: incident.Warn, Parts: many}) {
		t.Errorf("an incident of 1000 parts has %d, and is sent again", len(f.Parts))
	}
}

// An incident whose topic is gone ends. People are notified if they know of the incident, and not
// of its end.
func TestFollower_End(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state incident.State
		want  bool
	}{
		"none":                               {incident.State{}, false},
		"addressed":                          {incident.State{Since: at, Changed: at, Addressed: []string{"chat"}}, true},
		"addressed to none":                  {incident.State{Since: at, Changed: at.Add(time.Second), Addressed: []string{}}, false},
		"over, and addressed":                {incident.State{Since: at, Over: at, Addressed: []string{"chat", "pager"}, AcceptedBy: []string{"chat"}}, true},
		"over, and accepted":                 {incident.State{Since: at, Over: at, Addressed: []string{"chat"}, AcceptedBy: []string{"chat"}}, false},
		"all notified":                       {incident.State{Since: at, Changed: at, AllNotified: true}, true},
		"accepted by some":                   {incident.State{Since: at, Changed: at, AcceptedBy: []string{"chat"}}, true},
		"notified, and not that it is worse": {incident.State{Since: at, Changed: at.Add(time.Second)}, true},
		"not notified":                       {incident.State{Since: at, Changed: at}, false},
		"over, and notified":                 {incident.State{Since: at, Changed: at, Over: at, AllNotified: true}, false},
		"over, and not notified":             {incident.State{Since: at, Changed: at, Over: at}, true},
	} {
		f := incident.Follower{State: c.state}
		if got := f.End(at.Add(time.Minute), "it is gone"); got != c.want || got && (f.On() || f.AllNotified || f.Text != ": it is gone") {
			t.Errorf("%s: %v, and it is %+v", name, got, f.State)
		}
	}
}

// A receiver awaits news while an incident lasts, and the end of one whose beginning it got. Notes
// of older versions do not say who got it, so all receivers get its end.
func TestState_Awaits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state incident.State
		want  bool
	}{
		"none":                                   {incident.State{}, false},
		"it lasts":                               {incident.State{Since: at, Addressed: []string{}}, true},
		"it lasts, and was accepted":             {incident.State{Since: at, Addressed: []string{"chat"}, AcceptedBy: []string{"chat"}}, false},
		"it lasts, and another accepted it":      {incident.State{Since: at, Addressed: []string{"pager"}, AcceptedBy: []string{"pager"}}, true},
		"it lasts, and was given up":             {incident.State{Since: at, Addressed: []string{"chat"}, GivenUp: map[string]string{"chat": "404"}}, true},
		"over":                                   {incident.State{Since: at, Over: at, Addressed: []string{"chat"}}, true},
		"over, and the receiver is new":          {incident.State{Since: at, Over: at, Addressed: []string{"pager"}}, false},
		"over, and no receiver knew":             {incident.State{Since: at, Over: at, Addressed: []string{}}, false},
		"an old note, all notified":              {incident.State{Since: at, AllNotified: true}, false},
		"an old note, accepted by another":       {incident.State{Since: at, AcceptedBy: []string{"pager"}}, true},
		"an old note, over, accepted by another": {incident.State{Since: at, Over: at, AcceptedBy: []string{"pager"}}, true},
	} {
		if got := c.state.Awaits("chat"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The clock of the server that noted a change was fast by minutes. The next owner notifies of what
// is new all the same, and not when its own clock has come so far.
func TestFollower_AFastClockDelaysNoNewPart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 1, 40, 0, 0, time.UTC)
	fast := now.Add(10 * time.Minute)
	f := incident.Follower{State: incident.State{Severity: incident.Warn, Text: "decode came", Parts: []string{"decode"}, Since: fast, Changed: fast, Addressed: []string{}}}
	both := &incident.Alert{Severity: incident.Warn, Text: "decode and tax came", Parts: []string{"decode", "tax"}}
	if first, then := f.Observe(now, both), f.Observe(now.Add(time.Minute), both); !first && !then {
		t.Error("a minute later there was nothing to send")
	}
}
