package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// consumersModel is the model of the template "consumers".
type consumersModel struct {
	Source string
	Known  moment // empty before the server has looked
	Hidden int
	Rows   []consumerRow
	More   int // groups that have no row
}

// mostConsumers bounds the groups of a page: those that need somebody first.
const mostConsumers = 50

// mostMembers bounds the members of a group on a page.
const mostMembers = 100

// consumerRow is a consumer group in a table.
type consumerRow struct {
	api.Consumer
	Behind   string // its lag
	Waiting  string // what it has parked
	Next     moment
	NextElse string // without a next due time
	Held     []phrase
	Troubles []phrase
	Parts    []memberRow
	MoreOf   int // members that have no row
}

// memberRow is a member of a group.
type memberRow struct {
	api.ConsumerMember
	Has string // its partitions
}

func newConsumersModel(all *api.Consumers, now time.Time) consumersModel {
	m := consumersModel{Source: all.Source, Known: momentAt(all.Known, now), Hidden: all.Hidden}
	m.More = max(len(all.Groups)-mostConsumers, 0)
	for _, g := range all.Groups[:len(all.Groups)-m.More] {
		row := consumerRow{Consumer: g, Behind: numberOrUnknown(g.Lag), Waiting: numberOrUnknown(g.Parked), Next: momentAt(g.NextDue, now), NextElse: "unknown", MoreOf: max(len(g.Members)-mostMembers, 0)}
		if g.Parked != nil && *g.Parked == 0 {
			row.NextElse = "none"
		}
		if g.Guard != nil {
			row.Held = guardPhrases([]api.Guard{*g.Guard}, now)
		}
		for _, t := range g.Troubles {
			p := phrase{Text: partitionsText(t.Partitions, g.Partitions) + ": " + t.Text, Red: g.Bad}
			if t.Since != nil {
				p.Text, p.At = p.Text+", since", momentOf(*t.Since, now)
			}
			if t.Lag != nil && *t.Lag > 0 {
				p.After = number.Of(*t.Lag, "record") + " behind"
			}
			row.Troubles = append(row.Troubles, p)
		}
		for _, member := range g.Members[:len(g.Members)-row.MoreOf] {
			row.Parts = append(row.Parts, memberRow{member, partitionsText(member.Partitions, nil)})
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

func numberOrUnknown(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return number.Format(*n)
}

// partitionsText names partitions: the first few of many.
func partitionsText(all []int32, of *int) string {
	const most = 12
	switch n := len(all); {
	case n == 0:
		return "no partition"
	case n == 1:
		return fmt.Sprintf("partition %d", all[0])
	case of != nil && n == *of:
		return fmt.Sprintf("all %d partitions", n)
	}
	var names []string
	for _, p := range all[:min(len(all), most)] {
		names = append(names, strconv.Itoa(int(p)))
	}
	text := "partitions " + strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
