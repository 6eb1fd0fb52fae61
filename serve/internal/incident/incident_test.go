package incident_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/incident"
)

// An incident begins once, is told once more if it becomes urgent, and is over a minute after its
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
		if changed := f.See(began.Add(step.after), step.alert); changed != step.changed || f.On() != step.on {
			t.Errorf("step %d, after %v: changed %v, on %v; want %v, %v", i, step.after, changed, f.On(), step.changed, step.on)
		}
		if i == 3 && (f.Severity != incident.Page || f.Text != page.Text) {
			t.Errorf("it is %q, %q", f.Severity, f.Text)
		}
	}
}

// What one server notes, another one reads.
func TestState_SurvivesItsNote(t *testing.T) {
	t.Parallel()
	s := incident.State{V: 1, Severity: incident.Page, Text: "x", Since: time.Unix(1, 0).UTC(), Over: time.Unix(2, 0).UTC(), Told: true}
	if got, err := incident.Parse(s.Note()); err != nil || got != s {
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
