package look

// What a summary counts letters by, besides their failures.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/serve/where"
)

// counting is what the flags --by name.
type counting struct {
	times time.Duration // 0 for none
	field *where.Field  // nil for none
	text  string        // of the field
}

// parseBy reads the flags --by: a duration, a field, or both.
func parseBy(texts []string) (by counting, err error) {
	for _, text := range texts {
		if length, ok := selection.ParseDuration(text); ok {
			switch {
			case length < time.Second || length%time.Second != 0:
				return by, fmt.Errorf("--by: %s is not a whole number of seconds, from 1s on", text)
			case by.times != 0:
				return by, errors.New("--by: there are two durations: give one")
			}
			by.times = length
			continue
		}
		field, err := where.ParseField(text)
		switch {
		case err != nil && !strings.HasPrefix(text, "value"):
			return by, fmt.Errorf("--by: %q is no duration, such as 10m, 1h or 1d, and no field, such as header:tenant or value.customer", text)
		case err != nil:
			return by, fmt.Errorf("--by: %w", err)
		case by.field != nil:
			return by, errors.New("--by: there are two fields: give one")
		}
		by.field, by.text = field, text
	}
	return by, nil
}

// of returns what a ledger is to count by.
func (by counting) of(ctx context.Context, s *cli.Session, undecoded *cli.Unread) dlq.SummaryBy {
	how := dlq.SummaryBy{Times: by.times}
	if by.field != nil {
		how.Value = func(l *dlq.Letter, c *dlq.ValueCounts) {
			shown, hidden, read := cli.Read(ctx, s.Tool, l)
			undecoded.Add(l, read.Err())
			by.field.Count(shown, hidden, c)
		}
	}
	return how
}

// rows is a row for each of the values that most letters have, and for the others.
func (by counting) rows(top *dlq.TopValues) (rows output.Rows) {
	if top == nil {
		return nil
	}
	row := func(n int64, value any) {
		if n > 0 {
			rows = append(rows, []output.Field{output.NewField("", "OPEN", n).Right(), output.NewField("", "BY "+by.text, value).MayCut()})
		}
	}
	for _, v := range top.Top {
		value := v.Value
		if value == "" {
			value = `""`
		}
		if v.AtLeast < v.Open {
			value += fmt.Sprintf(" (at least %d)", v.AtLeast)
		}
		row(v.Open, value)
	}
	others := fmt.Sprintf("(%d other values)", top.Values-len(top.Top))
	if !top.Exact {
		others = "(others; there are too many values for exact counts)"
	}
	row(top.Others, output.Pair{Table: others})
	row(top.Without, output.Pair{Table: "(none)"})
	row(top.Hidden, output.Pair{Table: "(redacted)"})
	return rows
}

// values is the counts for JSON.
type values struct {
	Top     []valueCount `json:"top"`
	Others  int64        `json:"others"`
	Without int64        `json:"without"`
	Hidden  int64        `json:"hidden"`
	Values  int          `json:"values"`
	Exact   bool         `json:"exact"`
}

type valueCount struct {
	Value   string `json:"value"`
	Count   int64  `json:"count"`
	AtLeast int64  `json:"atLeast"`
}

func valuesJSON(top *dlq.TopValues) values {
	v := values{Top: []valueCount{}, Others: top.Others, Without: top.Without, Hidden: top.Hidden, Values: top.Values, Exact: top.Exact}
	for _, t := range top.Top {
		v.Top = append(v.Top, valueCount{t.Value, t.Open, t.AtLeast})
	}
	return v
}

func timeFields(c dlq.TimeCount) []output.Field {
	return []output.Field{
		output.NewField("from", "", c.From), output.NewField("open", "", c.Open), output.NewField("earlier", "", c.Earlier),
	}
}
