package look

// Consumers that are looked at again and again.

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// lookEvery is how often --follow looks.
const lookEvery = 5 * time.Second

// followConsumers looks again and again, until ctx ends, and prints what changes.
func followConsumers(ctx context.Context, s *cli.Session, ask consumers.Ask) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, problem := map[string]string{}, ""
	for {
		seen, err := lookAt(ctx, s, ask)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			problem = ""
		} else if text := err.Error(); text != problem {
			problem = text
			s.Screen.Warn("%s", text)
		}
		if err := printChanges(s, &seen, last); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// printChanges prints the uses whose state is another one than at the last look, and keeps what
// they are now. In JSON it prints all of them.
func printChanges(s *cli.Session, seen *consumers.Seen, last map[string]string) error {
	now := s.Now()
	var waits int64
	for i := range seen.Groups {
		g := &seen.Groups[i]
		for j := range g.Uses {
			u := &g.Uses[j]
			waits += max(0, u.Lag)
			if s.Screen.Format != output.Table {
				if err := s.Screen.Object(useFields(g, u, now)...); err != nil {
					return err
				}
				continue
			}
			state, _ := consumers.Headline(g, u)
			what := state
			for _, t := range u.Troubles() {
				what += "\n" + t.Of(u.Partitions) + t.Text
			}
			key := g.Name + "\n" + u.Topic
			if last[key] == what {
				continue
			}
			last[key] = what
			if _, err := fmt.Fprintln(s.Screen.Data(), output.Escape(changeText(s, g, u, state))); err != nil {
				return err
			}
		}
	}
	s.Screen.Status("%s, lag %d", counted(len(seen.Groups), "group", "groups"), waits)
	return nil
}

// changeText is a line about a use whose state has changed.
func changeText(s *cli.Session, g *consumers.Group, u *consumers.Use, state string) string {
	now := s.Now()
	text := fmt.Sprintf("%s  %s on %s: %s", s.Screen.Look.Time(now), g.Name, u.Topic, state)
	if u.Lag >= 0 {
		text += fmt.Sprintf(", lag %d", u.Lag)
	}
	if u.Guard != nil {
		text += "; " + heldCell([]guards.Guard{*u.Guard}, now).Table
	}
	if troubles := troublesCell(u, now).Table; troubles != "" {
		text += "; " + troubles
	}
	return text
}
