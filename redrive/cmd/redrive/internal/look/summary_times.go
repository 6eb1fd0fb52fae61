package look

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// parseBy reads the length of the times by which failures are counted; zero for none.
func parseBy(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	by, ok := selection.ParseDuration(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("--by: %q is no duration, such as 10m, 1h or 1d", text)
	case by < time.Second || by%time.Second != 0:
		return 0, fmt.Errorf("--by: %s is not a whole number of seconds, from 1s on", text)
	}
	return by, nil
}

func timeFields(c dlq.TimeCount) []output.Field {
	return []output.Field{
		output.NewField("from", "", c.From), output.NewField("open", "", c.Open), output.NewField("earlier", "", c.Earlier),
	}
}

const (
	mostDrawn  = 100 // rows of a drawing, the latest
	shortGap   = 3   // times without a failure that have a row each
	longestBar = 40  // characters
)

// drawTimes is a bar for each time, as characters that any terminal has. Times without failures
// have rows too, so that the gaps show, and many of them one row.
func drawTimes(times []dlq.TimeCount, by time.Duration) (rows output.Rows) {
	most := int64(1)
	for _, c := range times {
		if !c.Earlier {
			most = max(most, c.Open)
		}
	}
	row := func(from, open any, bar string) {
		rows = append(rows, []output.Field{
			output.NewField("", "FAILED FROM", from), output.NewField("", "COUNT", open).Right(),
			output.NewField("", fmt.Sprintf("IN %s EACH", output.Duration(by)), bar).MayCut(),
		})
	}
	before := int64(0)
	if left := len(times) - mostDrawn; left > 0 {
		for _, c := range times[:left] {
			before += c.Open
		}
		times = times[left:]
	} else if len(times) > 0 && times[0].Earlier {
		before, times = times[0].Open, times[1:]
	}
	if before > 0 {
		row("earlier", before, " ")
	}
	for i, c := range times {
		if i > 0 {
			last := times[i-1].From
			gap := int(c.From.Sub(last)/by) - 1
			if gap > shortGap {
				row(nil, nil, fmt.Sprintf("%s without failures", output.Duration(time.Duration(gap)*by)))
			} else {
				for n := range gap {
					row(last.Add(time.Duration(n+1)*by), int64(0), " ")
				}
			}
		}
		// A time with a failure never looks like one without.
		row(c.From, c.Open, strings.Repeat("#", max(1, int(c.Open*longestBar/most))))
	}
	return rows
}
