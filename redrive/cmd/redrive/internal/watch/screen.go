package watch

// The state of a topic on a terminal.

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/run"
)

// terminal draws the state anew each time.
type terminal struct {
	*cli.Tool
	live  *output.Live
	meter run.Meter
}

func (t *terminal) show(v *view, silent time.Time, read, total int64) error {
	width, height := t.live.Size()
	frame, err := t.frame(v, width, height, silent, read, total)
	if err != nil {
		return err
	}
	return t.live.Draw(frame)
}

func (t *terminal) end() error { return t.live.End() }

// frame returns the lines of a screen, as many as it has. Where it is low, it has no picture.
func (t *terminal) frame(v *view, width, height int, silent time.Time, read, total int64) ([]string, error) {
	var b bytes.Buffer
	s := t.Screen.Frame(&b, width)
	taken := func() []string {
		defer b.Reset()
		return linesOf(b.String())
	}
	s.Line(output.Heading, "%s  %s", v.topic, s.Look.Time(t.Now()))
	t.trouble(s, v, silent)
	if v.looked.IsZero() && v.problem == nil {
		s.Line("", "reading it: %s", output.Bar(read, max(total, 1)))
	}
	for _, p := range v.headline(s.Look, v.asOf(t.Now(), silent)) {
		s.Line(p.tone, "%s", p.text)
	}
	words := taken()
	if v.run != nil {
		s.Line("", "")
		t.run(s, v)
		words = append(words, taken()...)
	}
	if drawn, each, most := v.picture.draw(width); most > 0 {
		s.Line("", "")
		s.Line(output.Bad, "%s", drawn)
		s.Line("", "failures of the last %s, a bar for %s, at most %d", output.Duration(bars*v.picture.by), output.Duration(each), most)
	}
	picture := taken()
	if len(v.groups) == 0 {
		return append(words, picture...), nil
	}
	s.Line("", "")
	if err := s.Rows(groupRows(v, t.Now())); err != nil {
		return nil, err
	}
	groups := taken()
	if height > 0 && len(words)+len(picture)+min(len(groups), leastRows) > height {
		picture = nil
	}
	words = append(words, picture...)
	if room := height - len(words); height > 0 && len(groups) > room {
		shown := max(0, min(len(groups), room-1))
		more := fmt.Sprintf("… %d more rows: redrive summary %s", len(groups)-shown, v.topic)
		groups = append(groups[:shown:shown], output.Cut(more, width))
	}
	return append(words, groups...), nil
}

// leastRows is how many lines the groups have beside a picture.
const leastRows = 6

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// trouble says why the numbers are not those of now.
func (t *terminal) trouble(s *output.Screen, v *view, silent time.Time) {
	switch {
	case v.problem != nil:
		s.Line(output.Bad, "trying again: %v", cli.WithoutGuess(v.problem.Error()))
	case !silent.IsZero():
		s.Line(output.Bad, "the brokers have not answered for %s; waiting", output.Duration(t.Now().Sub(silent).Round(time.Second)))
	default:
		return
	}
	if !v.looked.IsZero() {
		s.Line(output.Caution, "what follows is of %s", s.Look.Time(v.looked))
	}
}

// run says how far the run is.
func (t *terminal) run(s *output.Screen, v *view) {
	o := v.run
	by := o.By
	if o.Why != "" {
		by += ": " + o.Why
	}
	s.Line(output.Heading, "run %s/%s by %s", o.Topic, o.ID, by)
	text, bad := t.meter.Line(*o, t.Now())
	tone := output.Busy
	if bad {
		tone = output.Bad
	}
	if !o.State.Finished() {
		text = output.Bar(o.Counts.Sent, o.Counts.Selected) + "  " + text
	}
	s.Line(tone, "%s", text)
	if o.Waiting != "" {
		s.Line(output.Caution, "waiting: %s", o.Waiting)
	}
	if o.Cause != "" {
		s.Line(output.Bad, "cause: %s", o.Cause)
	}
}

// groupRows are the groups. A class with several fingerprints has a row of its own above them.
func groupRows(v *view, now time.Time) (rows output.Rows) {
	for i := 0; i < len(v.groups); {
		n := i + 1
		for n < len(v.groups) && v.groups[n].class == v.groups[i].class {
			n++
		}
		of := v.groups[i:n]
		i = n
		if len(of) == 1 {
			rows = append(rows, groupRow(v, &of[0], of[0].class, now))
			continue
		}
		rows = append(rows, groupRow(v, classOf(of), of[0].class, now))
		for j := range of {
			rows = append(rows, groupRow(v, &of[j], "  "+cmp.Or(of[j].fingerprint, "-"), now))
		}
	}
	return rows
}

// classOf adds up the groups of one class.
func classOf(of []group) *group {
	sum := of[0]
	sum.versions, sum.sample.message = nil, ""
	for _, g := range of[1:] {
		sum.open, sum.recent, sum.failedAgain = sum.open+g.open, sum.recent+g.recent, sum.failedAgain+g.failedAgain
		if g.first.Before(sum.first) {
			sum.first = g.first
		}
		if g.last.After(sum.last) {
			sum.last = g.last
		}
	}
	sum.sample.message = fmt.Sprintf("%d fingerprints", len(of))
	return &sum
}

func groupRow(v *view, g *group, name string, now time.Time) []output.Field {
	field := output.NewField
	tag, tone := g.tag(v.isHeld(), now)
	var recent any
	if g.recent > 0 {
		recent = fmt.Sprintf("+%d", g.recent)
	}
	return []output.Field{
		field("", "CLASS", name).MayCut(),
		field("", "OPEN", g.open).Right(),
		field("", "5 MIN", recent).Right().Spare(2),
		field("", "STATE", tag).Toned(tone).Last(2),
		field("", "WHAT IT SAYS", output.OrNil(g.sample.message)).MayCut().Last(1),
		field("", "FIRST", output.Ago(g.first)).Spare(3),
		field("", "LAST", output.Ago(g.last)).Last(3),
		field("", "VERSION", g.versions).MayCut().Spare(4),
	}
}
