package look

// A summary as fields.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func totals(sum *dlq.Summary) []output.Field {
	oldest, _ := sum.Oldest()
	return []output.Field{
		output.NewField("topic", "TOPIC", sum.Topic),
		output.NewField("open", "OPEN", sum.Open),
		output.NewField("pending", "PENDING", output.Explained(sum.Pending, ": redriven, without a recorded outcome; redrive runs "+sum.Topic+" names the run, status RUN shows what is known by now, plan records it")),
		output.NewField("resolved", "RESOLVED", output.Pair{Table: resolvedText(sum), JSON: sum.Resolved}),
		output.NewField("resolvedAs", "", sum.ResolvedAs),
		output.NewField("duplicates", "DUPLICATES", sum.Duplicates),
		output.NewField("foreign", "FOREIGN", output.UnlessZero(sum.Foreign)),
		output.NewField("malformed", "MALFORMED", output.UnlessZero(sum.Malformed)),
		output.NewField("oldest", "OLDEST OPEN", output.Ago(oldest.Oldest)),
	}
}

// resolvedText is the number of resolved letters, and how many of them have which state.
func resolvedText(sum *dlq.Summary) string {
	text := strconv.FormatInt(sum.Resolved, 10)
	for i, state := range slices.Sorted(maps.Keys(sum.ResolvedAs)) {
		text += fmt.Sprintf("%s%d %s", []string{": ", ", "}[min(i, 1)], sum.ResolvedAs[state], state)
	}
	return text
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
		}
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
