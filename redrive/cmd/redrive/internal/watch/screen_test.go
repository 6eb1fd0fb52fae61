package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// night is a topic with two classes, one of which has two fingerprints, and letters that failed
// again.
func night() *letters {
	s := &letters{rows: map[int32][]row{}}
	add := func(k kind, message string, n int, ago, each time.Duration, f fate) {
		number := uint32(len(s.kinds))
		s.kinds = append(s.kinds, sample{k, message, 0, int64(len(s.rows[0]))})
		for i := range n {
			at := clitest.Noon.Add(-ago + time.Duration(i)*each).UnixMilli()
			s.rows[0] = append(s.rows[0], row{offset: int64(len(s.rows[0])), failed: at, entered: at, kind: number, fate: f})
		}
	}
	add(kind{"tax.TableMiss", "00000000000000aa", "2.3.1"}, `no rate for region "N?"`, 180, 45*time.Minute, 15*time.Second-time.Millisecond, open)
	add(kind{"tax.TableMiss", "00000000000000bb", "2.3.1"}, "no table", 6, 10*time.Minute, time.Minute, open)
	add(kind{"decode", "00000000000000cc", "2.1.0"}, "unexpected end of \x1b[31mJSON, at a place that is far behind the end of the line", 3, 30*time.Hour, time.Minute, open)
	add(kind{"decode", "00000000000000cc", "2.1.0"}, "", 2, 40*time.Hour, time.Minute, failed)
	add(kind{"http.503", "00000000000000dd", "2.3.0"}, "service unavailable", 4, 5*time.Hour, time.Minute, resolved)
	add(kind{"http.503", "00000000000000dd", "2.3.0"}, "service unavailable", 1, 5*time.Hour, time.Minute, pending)
	add(kind{"http.503", "00000000000000dd", "2.3.0"}, "service unavailable", 2, 3*time.Hour, time.Minute, open)
	add(kind{"http.503", "00000000000000dd", "2.3.0"}, "service unavailable", 2, 3*time.Hour, time.Minute, duplicate)
	return s
}

func frameOf(t *testing.T, v *view, width, height int, silent time.Time) string {
	t.Helper()
	tl, _ := clitest.NewTool(nil)
	tl.Screen.Look = output.Look{Now: tl.Now, Zone: time.UTC}
	lines, err := (&terminal{Tool: tl}).frame(v, width, height, silent, 40, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if n := runewidth.StringWidth(l); n > width || strings.ContainsAny(l, "\x1b\n") {
			t.Errorf("%d wide of %d: %q", n, width, l)
		}
	}
	if height > 0 && len(lines) > height {
		t.Errorf("%d lines of %d", len(lines), height)
	}
	return strings.Join(lines, "\n") + "\n"
}

// An operator sees in words how it is, then the failures over time, the run, and the groups, in a
// wide terminal, a narrow and a low one.
func TestFrame_FitsTheTerminal(t *testing.T) {
	t.Parallel()
	v := &view{topic: "orders.dlq", looked: clitest.Noon, retention: 42 * time.Hour}
	v.count(night(), clitest.Noon)
	var b bytes.Buffer
	for _, size := range [][2]int{{120, 40}, {56, 40}, {80, 10}, {24, 14}} {
		fmt.Fprintf(&b, "== %d × %d\n%s", size[0], size[1], frameOf(t, v, size[0], size[1], time.Time{}))
	}
	v.run = &redrive.Outcome{
		Topic: "orders.dlq", ID: "20261120-115500-a1b2c3", State: redrive.Sending, By: "ann", Why: "OPS-4711", Heartbeat: clitest.Noon, Started: clitest.Noon.Add(-time.Minute),
		Pace: redrive.Pace{Rate: 2}, RampBegan: clitest.Noon.Add(-time.Minute), Counts: redrive.Counts{Selected: 100, Sent: 40, Succeeded: 38, Failed: 1, Pending: 1},
	}
	v.guards = []guards.Guard{{Group: "billing", Held: true, Since: clitest.Noon.Add(-12 * time.Minute), Class: "http.503", Partitions: 2, Of: 3, Waiting: 1204}}
	fmt.Fprintf(&b, "== held, with a run\n%s", frameOf(t, v, 100, 40, time.Time{}))
	v.problem, v.looked = errors.New("unable to dial: connection refused"), clitest.Noon.Add(-4*time.Minute)
	v.run.State, v.run.Cause, v.run.Ended, v.guards = redrive.Aborted, "letter orders.dlq/0/305 failed again", clitest.Noon, nil
	fmt.Fprintf(&b, "== without brokers, after a run\n%s", frameOf(t, v, 100, 40, time.Time{}))
	fmt.Fprintf(&b, "== not read yet\n%s", frameOf(t, &view{topic: "orders.dlq"}, 100, 40, time.Time{}))
	fmt.Fprintf(&b, "== not answered\n%s", frameOf(t, &view{topic: "orders.dlq"}, 100, 40, clitest.Noon.Add(-20*time.Second)))
	clitest.Golden(t, "frames.txt", b.String())
}

// A state that is old is not shown as though it went on: half an hour without an answer is no quiet
// half hour.
func TestHeadline_GoesByTheTimeOfItsNumbers(t *testing.T) {
	t.Parallel()
	v := &view{topic: "orders.dlq", looked: clitest.Noon}
	v.count(night(), clitest.Noon)
	look := output.Look{Now: func() time.Time { return clitest.Noon.Add(30 * time.Minute) }, Zone: time.UTC}
	for silent, want := range map[time.Time]string{{}: "19 new in 5 min, the last 30m15s ago", clitest.Noon.Add(time.Second): "19 new in 5 min, still growing"} {
		if got := v.headline(look, v.asOf(look.Now(), silent)); got[0].text != want {
			t.Errorf("silent since %v: %q, want %q", silent, got[0].text, want)
		}
	}
}

// Each state has its words.
func TestState_HasItsWords(t *testing.T) {
	t.Parallel()
	since := func(ago time.Duration) time.Time { return clitest.Noon.Add(-ago) }
	for want, v := range map[string]*view{
		"unread: ":               {},
		"empty: no dead letters": {looked: clitest.Noon},
		"settled: all settled":   {looked: clitest.Noon, resolved: 3},
		"pending: none open; the outcomes of redriven letters are pending": {looked: clitest.Noon, resolved: 3, pending: 1},
		"quiet: quiet for 3h":                         {looked: clitest.Noon, open: 3, newest: since(3 * time.Hour), oldest: since(4 * time.Hour)},
		"slowing: 2 new in 5 min, the last 2m ago":    {looked: clitest.Noon, open: 3, recent: 2, newest: since(2 * time.Minute), oldest: since(4 * time.Hour)},
		"growing: 2 new in 5 min, still growing":      {looked: clitest.Noon, open: 3, recent: 2, newest: since(20 * time.Second), oldest: since(4 * time.Hour)},
		"quiet: strained by mail (1 of 2 partitions)": {looked: clitest.Noon, open: 3, newest: since(3 * time.Hour), guards: []guards.Guard{{Group: "mail", Since: clitest.Noon.Add(time.Hour), Partitions: 1, Of: 2, Waiting: -1}}},

		"held: held since 2026-11-20 11:00:00Z (1h) by mail (1 of 2 partitions), 1 record waits": {looked: clitest.Noon, open: 3, newest: since(3 * time.Hour), guards: []guards.Guard{{Group: "mail", Held: true, Since: since(time.Hour), Partitions: 1, Of: 2, Waiting: 1}}},
	} {
		look := output.Look{Now: func() time.Time { return clitest.Noon }, Zone: time.UTC}
		first := ""
		if all := v.headline(look, clitest.Noon); len(all) > 0 {
			first = all[0].text
		}
		if got := string(v.state(clitest.Noon)) + ": " + first; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A bar shows that something failed, however little that is beside the most, and fits its room.
func TestPicture_FitsItsRoom(t *testing.T) {
	t.Parallel()
	var p picture
	p.by = time.Minute
	p.n[0], p.n[1], p.n[30], p.n[59] = 1, 100_000, 50_000, 7
	for room := 1; room < 80; room++ {
		drawn, each, most := p.draw(room)
		n := len([]rune(drawn))
		if n > room || n*int(each/time.Minute) != bars || most < 100_000 || strings.Count(drawn, "█") != 1 || room >= bars && !strings.HasPrefix(drawn, "▁█·") || !strings.HasSuffix(drawn, "▁") && room > 3 {
			t.Errorf("room for %d: %q of %v, at most %d", room, drawn, each, most)
		}
	}
}

// A script that gets a line each second for what only ages would have to compare them itself.
func TestLines_WriteNothingWhereOnlyTimePassed(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	tl := &cli.Tool{Screen: output.NewScreen(&data, io.Discard, func(string) string { return "" })}
	now := clitest.Noon
	tl.Now = func() time.Time { return now }
	l := &lines{Tool: tl}
	s := night()
	for range 30 {
		v := &view{topic: "orders.dlq", looked: now}
		v.count(s, now)
		if err := l.show(v, time.Time{}, 0, 0); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if n := strings.Count(data.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one:\n%s", n, data.String())
	}
	if err := l.show(&view{}, time.Time{}, 0, 0); err != nil || strings.Count(data.String(), "\n") != 1 {
		t.Errorf("it writes what was not read: %s", data.String())
	}
}
