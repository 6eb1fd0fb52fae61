package look

// The groups that hold a topic's records back, by their commits.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/internal/guards"
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

// readHeld reads which groups hold records of sources, or run them in a strain, by source. It asks
// for the groups that this user may see.
func readHeld(ctx context.Context, adm *kadm.Client, sources []string) (map[string][]guards.Guard, error) {
	groups, err := adm.ListGroups(ctx)
	if _, denied := errors.AsType[*kadm.AuthError](err); denied {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	found, err := guards.Read(ctx, adm, groups.Groups(), sources)
	by := map[string][]guards.Guard{}
	for _, g := range found {
		by[g.Topic] = append(by[g.Topic], g)
	}
	return by, err
}
