package look

// The groups that consume a topic, and hold its records back.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// held is a guard as JSON has it.
type held struct {
	Group      string    `json:"group"`
	State      string    `json:"state"` // held or strained
	Since      time.Time `json:"since"`
	Class      string    `json:"class"`
	Partitions int       `json:"partitions"`
	Of         int       `json:"of"`
	Waiting    any       `json:"waiting"` // null if it is not known
}

// heldCell shows the guards of a source that are not closed: a line for each in a table.
func heldCell(of []guards.Guard, now time.Time) output.Pair {
	lines, all := make([]string, len(of)), make([]held, len(of))
	for i, g := range of {
		state := "strained"
		if g.Held {
			state = "held"
		}
		all[i] = held{g.Group, state, g.Since.UTC(), g.Class, g.Partitions, g.Of, nil}
		lines[i] = fmt.Sprintf("%s for %s by %s (%d of %d partitions)", state, output.Duration(max(0, now.Sub(g.Since).Round(time.Second))), g.Group, g.Partitions, g.Of)
		if g.Waiting >= 0 {
			all[i].Waiting = g.Waiting
			lines[i] += fmt.Sprintf(", %d records wait", g.Waiting)
		}
		if g.Class != "" {
			lines[i] += "; most failures are " + g.Class
		}
	}
	return output.Pair{Table: strings.Join(lines, "; "), JSON: all}
}

// consumed is what the groups of a source do with it.
type consumed struct {
	guards   []guards.Guard
	rows     []consumedBy // nil if they are not known
	troubles []string     // of lanes, by group
}

// consumedBy is a group in a row of a topic, as JSON has it.
type consumedBy struct {
	Group   string `json:"group"`
	State   string `json:"state"` // as consumers has it
	Members any    `json:"members"`
	Lag     any    `json:"lag"` // null if it is not known
}

// readConsumed reads what groups do with sources, by source. It asks for the groups that this user
// may see.
func readConsumed(ctx context.Context, s *cli.Session, sources []string) (map[string]consumed, error) {
	seen, err := consumers.Look(ctx, s.Client, consumers.Ask{Topics: sources, Naming: s.Naming})
	if _, denied := errors.AsType[*kadm.AuthError](err); denied && len(seen.Groups) == 0 {
		return nil, nil
	}
	if n := len(seen.Hidden); n > 0 {
		err = errors.Join(err, fmt.Errorf("%s may not be described: %s", counted(n, "group", "groups"), strings.Join(seen.Hidden, ", ")))
	}
	by := map[string]consumed{}
	for _, source := range sources {
		by[source] = consumed{rows: []consumedBy{}}
	}
	for i := range seen.Groups {
		g := &seen.Groups[i]
		for j := range g.Uses {
			u := &g.Uses[j]
			of := by[u.Topic]
			if u.Guard != nil {
				of.guards = append(of.guards, *u.Guard)
			}
			state, bad := consumers.State(g, u)
			of.rows = append(of.rows, consumedBy{g.Name, state, unless(g.Undescribed != nil, len(g.Members)), number(u.Lag)})
			text := troublesCell(u, s.Now()).Table
			if text == "" && bad && u.Guard == nil {
				if text = state; u.Lag > 0 {
					text += ", " + counted(int(u.Lag), "record waits", "records wait")
				}
			}
			if text != "" {
				of.troubles = append(of.troubles, g.Name+": "+text)
			}
			by[u.Topic] = of
		}
	}
	return by, err
}

// cell shows who consumes a source: the groups that do, each with its state.
func (c consumed) cell() output.Pair {
	texts := make([]string, len(c.rows))
	for i, by := range c.rows {
		texts[i] = by.Group + " " + by.State
	}
	return output.Pair{Table: strings.Join(texts, ", "), JSON: c.rows}
}

// lines are what stands below a source in a table: what its groups hold back, and why.
func (c consumed) lines(now time.Time) output.Pair {
	cell := heldCell(c.guards, now)
	cell.Table = strings.Join(slices.DeleteFunc(append([]string{cell.Table}, c.troubles...), func(s string) bool { return s == "" }), "; ")
	return cell
}

// isBad reports whether somebody has to look.
func (c consumed) isBad() bool { return len(c.guards)+len(c.troubles) > 0 }
