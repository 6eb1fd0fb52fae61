package look

// What consumers shows of a group, as rows.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// number is a cell for a number that may not be known.
func number(n int64) any {
	if n < 0 {
		return nil
	}
	return n
}

// useFields are what a group does with a topic as a row.
func useFields(g *consumers.Group, u *consumers.Use, now time.Time) []output.Field {
	field := output.NewField
	state, bad := consumers.State(g, u)
	headline, _ := consumers.Headline(g, u)
	shown := field("state", "STATE", output.Pair{Table: headline, JSON: state})
	if bad {
		shown = shown.Toned(output.Bad)
	}
	guard := output.Pair{}
	if u.Guard != nil {
		guard = heldCell([]guards.Guard{*u.Guard}, now)
		guard.JSON = guard.JSON.([]held)[0]
	}
	undescribed := output.Pair{}
	if g.Undescribed != nil {
		undescribed = output.Pair{Table: "its members are not known: " + g.Undescribed.Error(), JSON: g.Undescribed.Error()}
	}
	return []output.Field{
		field("group", "GROUP", g.Name),
		field("topic", "TOPIC", u.Topic),
		shown,
		field("groupState", "", output.OrNil(g.State)),
		field("siding", "", u.Siding),
		field("memberCount", "MEMBERS", unless(g.Undescribed != nil, len(g.Members))).Right(),
		field("assigned", "ASSIGNED", output.Pair{Table: assignedText(u), JSON: u.Assigned}).Right().Spare(3),
		field("partitions", "", number(int64(u.Partitions))),
		field("lag", "LAG", number(u.Lag)).Right(),
		field("parked", "PARKED", number(u.Parked())).Right(),
		field("nextDue", "NEXT DUE", output.Ago(u.NextDue())).Spare(2),
		field("releases", "RELEASE", u.Releases).MayCut().Spare(1),
		field("guard", "", guard).Below(),
		field("troubles", "", troublesCell(u, now)).Below(),
		field("undescribed", "", undescribed).Below(),
		field("tiers", "", output.RowsOf(u.Tiers, tierFields)),
		field("lanes", "", output.RowsOf(u.Lanes, laneFields)),
		field("members", "", output.RowsOf(g.Members, func(m consumers.Member) []output.Field { return memberFields(g.Name, &m) })),
	}
}

func unless(unknown bool, n int) any {
	if unknown {
		return nil
	}
	return n
}

func assignedText(u *consumers.Use) string {
	if u.Partitions < 0 {
		return fmt.Sprint(u.Assigned)
	}
	return fmt.Sprintf("%d/%d", u.Assigned, u.Partitions)
}

// trouble is a trouble as JSON has it.
type trouble struct {
	Kind       string  `json:"kind"`
	Text       string  `json:"text"`
	Since      any     `json:"since"` // null if it is not known
	Partitions []int32 `json:"partitions"`
	Lag        any     `json:"lag"`
}

func troublesCell(u *consumers.Use, now time.Time) output.Pair {
	all, lines := []trouble{}, []string{}
	for _, t := range u.Troubles() {
		is := trouble{t.Kind, t.Text, nil, t.Partitions, number(t.Lag)}
		line := t.Of(u.Partitions) + ": " + t.Text
		if !t.Since.IsZero() {
			is.Since = t.Since.UTC()
			line += ", for " + output.Duration(max(0, now.Sub(t.Since).Round(time.Second)))
		}
		if t.Lag > 0 {
			line += ", " + counted(int(t.Lag), "record waits", "records wait")
		}
		all, lines = append(all, is), append(lines, line)
	}
	return output.Pair{Table: strings.Join(lines, "; "), JSON: all}
}

func tierFields(t consumers.Tier) []output.Field {
	field := output.NewField
	return []output.Field{
		field("topic", "", t.Topic), field("delayMs", "", t.Delay), field("parked", "", number(t.Parked)), field("nextDue", "", t.NextDue),
	}
}

func laneFields(l consumers.Lane) []output.Field {
	field := output.NewField
	return []output.Field{
		field("partition", "", l.Partition), field("state", "", l.Name()), field("since", "", l.Since), field("openTransactionSince", "", l.OpenSince),
		field("deaths", "", l.Suspects.Deaths), field("isolated", "", l.Suspects.Isolated), field("member", "", output.OrNil(l.Member)), field("lag", "", number(l.Lag)),
	}
}

func memberFields(group string, m *consumers.Member) []output.Field {
	field := output.NewField
	var all []string
	n := 0
	for topic, partitions := range m.Partitions {
		var texts []string
		for _, p := range partitions {
			texts = append(texts, fmt.Sprint(p))
		}
		n += len(partitions)
		all = append(all, topic+"/"+strings.Join(texts, ","))
	}
	slices.Sort(all)
	return []output.Field{
		field("group", "GROUP", group),
		field("host", "HOST", m.Host),
		field("client", "CLIENT", m.Client),
		field("release", "RELEASE", m.Releases),
		field("partitionCount", "PARTITIONS", n).Right(),
		field("partitions", "", output.Pair{Table: strings.Join(all, " "), JSON: m.Partitions}),
		field("id", "", m.ID),
		field("instance", "INSTANCE", output.OrNil(m.Instance)).Spare(1),
	}
}
