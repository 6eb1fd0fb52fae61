package look

// The rows of a summary: failures, folded by their classes.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// foldFailures returns the failures as a table has them: a class with several has a row with its
// total, and then theirs without its name.
func foldFailures(sum *dlq.Summary) (rows output.Rows) {
	fields := failureFields(sum)
	for _, c := range sum.Classes() {
		if len(c.Failures) > 1 {
			rows = append(rows, totalOf(c, fields))
		}
		for _, f := range c.Failures {
			row := fields(f)
			if len(c.Failures) > 1 {
				row[classColumn].Cell = blank
			}
			rows = append(rows, row)
		}
	}
	return rows
}

const (
	classColumn = 1
	blank       = " "
)

// totalOf returns the row of a class with several failures.
func totalOf(c dlq.ClassCount, fields func(dlq.Failure) []output.Field) []output.Field {
	total := dlq.Failure{Class: c.Class, Folded: c.Folded, Count: c.Open, First: c.Failures[0].First}
	for _, f := range c.Failures {
		if f.First.Before(total.First) {
			total.First = f.First
		}
		if f.Last.After(total.Last) {
			total.Last = f.Last
		}
	}
	row := fields(total)
	for i := range row {
		switch row[i].Key {
		case "fingerprint":
			row[i].Cell = fmt.Sprintf("%d fingerprints", len(c.Failures))
		case "groups", "samplePlace", "sample":
			row[i].Cell = blank
		}
	}
	return row
}

// failureFields returns how a failure is a row. Where all letters are of one group, the table omits
// it: its number of letters is below.
func failureFields(sum *dlq.Summary) func(dlq.Failure) []output.Field {
	field, groups := output.NewField, ""
	if len(sum.Groups) > 1 {
		groups = "GROUPS"
	}
	return func(f dlq.Failure) []output.Field {
		return []output.Field{
			field("count", "COUNT", f.Count).Right(),
			field("class", "CLASS", output.OrOther(f.Class, f.Folded)),
			field("fingerprint", "FINGERPRINT", output.OrOther(f.Fingerprint, f.Folded)).Spare(1),
			field("other", "", f.Folded),
			field("groups", groups, slices.Concat([]string{}, f.Groups)).MayCut(),
			field("first", "FIRST", output.Ago(f.First)).Spare(2),
			field("last", "LAST", output.Ago(f.Last)),
			field("samplePlace", "SHOW", placeText(f.Partition, f.Offset)),
			field("sample", "SAMPLE", output.OrNil(f.Sample)).MayCut().Last(1),
			field("frame", "", output.Pair{Table: firstText(f), JSON: output.OrNil(f.Frame)}).Below(),
			field("host", "", output.OrNil(f.Host)),
			field("version", "", output.OrNil(f.Version)),
		}
	}
}

// firstText is where the first letter of a failure failed: in the code, and in which process.
func firstText(f dlq.Failure) string {
	var parts []string
	if f.Frame != "" {
		parts = append(parts, "in "+f.Frame)
	}
	if f.Host != "" {
		parts = append(parts, "first on "+f.Host)
	}
	if f.Version != "" {
		parts = append(parts, "release "+f.Version)
	}
	return strings.Join(parts, ", ")
}

func classFields(c dlq.ClassCount) []output.Field {
	return []output.Field{
		output.NewField("count", "", c.Open), output.NewField("class", "", output.OrNil(c.Class)),
		output.NewField("other", "", c.Folded), output.NewField("fingerprints", "", len(c.Failures)),
	}
}

func groupFields(g dlq.GroupCount) []output.Field {
	field := output.NewField
	return []output.Field{field("open", "OPEN", g.Open).Right(), field("group", "GROUP", output.OrOther(g.Group, g.Folded)), field("other", "", g.Folded)}
}

func partitionFields(p dlq.PartitionCount) []output.Field {
	var at any
	if p.Open > 0 {
		at = p.OldestOffset
	}
	return []output.Field{
		output.NewField("partition", "", p.Partition),
		output.NewField("open", "", p.Open),
		output.NewField("pending", "", p.Pending),
		output.NewField("resolved", "", p.Resolved),
		output.NewField("duplicates", "", p.Duplicates),
		output.NewField("oldestOffset", "", at),
		output.NewField("oldest", "", p.Oldest),
	}
}
