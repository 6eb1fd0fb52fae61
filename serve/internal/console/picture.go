package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// mostSeries is how many classes a picture shows; the others are one.
const mostSeries = 5

// The size of pictures in units of their own. Pages stretch them.
const (
	pictureHeight = 100
	barWidth      = 10
	barGap        = 2
)

// window is the time that a picture shows: n times of a length.
type window struct {
	from time.Time
	by   time.Duration
	n    int
	// ahead is when the newest letter failed, if that is yet to come.
	ahead time.Time
}

// lengths are those that the times of a picture can have.
var lengths = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
	24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// spans are the times before now of which a picture shows one, if the address names none.
var spans = []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 180 * 24 * time.Hour}

// fewestTimes and mostTimes bound the times of a picture.
const (
	fewestTimes = 12
	mostTimes   = 61
)

// usualSpan is the shortest of spans that a picture shows if it is not known how old most letters
// are.
const usualSpan = 6 * time.Hour

// windowOf returns the window of a filter; without bounds, the shortest of spans that has the
// newest failure and those since most; the zero time is one that is not known.
func windowOf(f *Filter, newest, most, now time.Time) window {
	from, until := f.Since, f.Until
	if until.IsZero() {
		until = now
	}
	if from.IsZero() {
		length := spans[len(spans)-1]
		for _, s := range spans {
			begin := until.Add(-s)
			if most.IsZero() && s < usualSpan || !most.IsZero() && most.Before(begin) {
				continue
			}
			if newest.IsZero() || !newest.Before(begin) {
				length = s
				break
			}
		}
		from = until.Add(-length)
	}
	if !from.Before(until) {
		from = until.Add(-usualSpan)
	}
	w := window{by: lengths[len(lengths)-1]}
	if newest.After(now) {
		w.ahead = newest
	}
	for _, by := range lengths {
		if until.Sub(from)/by < mostTimes {
			w.by = by
			break
		}
	}
	w.from = from.Truncate(w.by)
	w.n = min(max(int((until.Sub(w.from)+w.by-1)/w.by), fewestTimes), mostTimes)
	if end := w.from.Add(time.Duration(w.n) * w.by); end.Before(until) {
		w.from = w.from.Add(until.Sub(end) + w.by - 1).Truncate(w.by) // the newest times count
	}
	return w
}

// picture shows how many letters failed at which time, by class.
type picture struct {
	ViewBox string
	Bars    []bar
	Legend  []legend
	Marks   []mark
	// Rows are the same as numbers, the latest first.
	Rows []pictureRow
	// Most is the largest number of a bar; Each is the length of a bar's time.
	Most int64
	Each string
	From moment
	// Until is the end of the time, if that is over.
	Until moment
	// Ahead is when the newest letter failed, if that is yet to come by the clock of this server.
	Ahead moment
	Span  string
	Total int64
}

// mark is a line in a picture: something that happened beside the failures.
type mark struct {
	Class      string // of its line: release or run
	X          int
	Text, Link string
	At         moment
}

// bar is a time of a picture. Link selects its letters.
type bar struct {
	Title, Link string
	Parts       []part
}

// part is the letters of a class within a bar.
type part struct{ Color, X, Y, Width, Height int }

// legend names the class of a color.
type legend struct {
	Color int
	Name  string
	Total int64
	Link  string
}

// pictureRow is a bar as numbers.
type pictureRow struct {
	At     moment
	Clock  string
	Link   string
	Counts []int64
	Total  int64
}

// otherClasses stands for the classes without a color, and noClass for letters without a class.
const (
	otherClasses = "other classes"
	noClass      = "no class"
)

// newPicture draws series. link returns the address of a part of the time.
func newPicture(w window, all []letterindex.Series, now time.Time, link func(since, until time.Time) string, classLink func(class string) string) *picture {
	p := &picture{
		ViewBox: fmt.Sprintf("0 0 %d %d", w.n*barWidth, pictureHeight), Each: span(w.by),
		From: momentOf(w.from, now), Ahead: momentOf(w.ahead, now), Span: span(time.Duration(w.n) * w.by),
	}
	if end := w.from.Add(time.Duration(w.n) * w.by); end.Before(now) {
		p.Until = momentOf(end, now)
	}
	totals := make([]int64, w.n)
	for i, s := range all {
		l := legend{Color: i, Name: s.Class}
		switch {
		case i == mostSeries:
			l.Name = otherClasses
		case s.Class == "":
			l.Name = noClass
		default:
			l.Link = classLink(s.Class)
		}
		for at, n := range s.Counts {
			totals[at] += n
			l.Total += n
		}
		p.Total += l.Total
		p.Legend = append(p.Legend, l)
	}
	for _, n := range totals {
		p.Most = max(p.Most, n)
	}
	for at, total := range totals {
		if total == 0 {
			continue
		}
		since := w.from.Add(time.Duration(at) * w.by)
		until := since.Add(w.by)
		b := bar{Link: link(since, until)}
		row := pictureRow{At: momentOf(since, now), Clock: clock(since, w.by), Link: b.Link, Total: total}
		var said []string
		below := int64(0)
		for i, s := range all {
			n := s.Counts[at]
			row.Counts = append(row.Counts, n)
			if n == 0 {
				continue
			}
			y, top := scaled(below, p.Most), scaled(below+n, p.Most)
			if top == y && below == 0 {
				top = y + 1 // what is there is seen
			}
			below += n
			b.Parts = append(b.Parts, part{Color: i, X: at * barWidth, Y: pictureHeight - top, Width: barWidth - barGap, Height: top - y})
			said = append(said, number.Format(n)+" "+p.Legend[i].Name)
		}
		b.Title = fmt.Sprintf("%s, %s: %s", clock(since, w.by), span(w.by), strings.Join(said, ", "))
		p.Bars = append(p.Bars, b)
		p.Rows = append([]pictureRow{row}, p.Rows...)
	}
	return p
}

// scaled returns the height of a number.
func scaled(n, most int64) int {
	if most == 0 {
		return 0
	}
	return int(float64(n) / float64(most) * pictureHeight)
}

// clock returns a time as precise as the length of a bar needs.
func clock(at time.Time, by time.Duration) string {
	switch at = at.UTC(); {
	case by < time.Minute:
		return at.Format("Jan 2 15:04:05")
	case by < 24*time.Hour:
		return at.Format("Jan 2 15:04")
	}
	return at.Format("Jan 2 2006")
}

// sparkline shows in few bars how many letters of a topic failed.
type sparkline struct {
	ViewBox string
	Bars    []part
	Title   string
}

const (
	sparkTimes  = 24
	sparkBy     = 15 * time.Minute
	sparkHeight = 20
)

func sparkWindow(now time.Time) window {
	return window{from: now.Truncate(sparkBy).Add(-(sparkTimes - 1) * sparkBy), by: sparkBy, n: sparkTimes}
}

func newSparkline(all []letterindex.Series) sparkline {
	totals := make([]int64, sparkTimes)
	var most, total int64
	for _, s := range all {
		for i, n := range s.Counts {
			totals[i] += n
			most = max(most, totals[i])
			total += n
		}
	}
	l := sparkline{ViewBox: fmt.Sprintf("0 0 %d %d", sparkTimes*4, sparkHeight), Title: number.Of(total, "failure") + " in the last 6 h"}
	for i, n := range totals {
		height := 1 // of the base line
		if n > 0 {
			height = max(int(float64(n)/float64(most)*sparkHeight), 2)
		}
		l.Bars = append(l.Bars, part{X: i * 4, Y: sparkHeight - height, Width: 3, Height: height})
	}
	return l
}
