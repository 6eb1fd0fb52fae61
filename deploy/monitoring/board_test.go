package monitoring_test

import (
	"testing"

	"github.com/sidingkafka/siding/deploy/monitoring"
)

func readBoards(t *testing.T) []monitoring.Board {
	t.Helper()
	all, err := monitoring.ReadBoards(boards)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d boards, %v", len(all), err)
	}
	return all
}

// Each panel has a unit and a description, each query names metrics and labels that exist, and the
// legends name labels that the result has.
func TestBoard_NameWhatExists(t *testing.T) {
	t.Parallel()
	s := golden(t)
	for _, b := range readBoards(t) {
		vars := b.Variables()
		if b.UID == "" || b.Title == "" || b.Description == "" || len(vars) == 0 || len(vars) != len(b.Templating.List)-1 {
			t.Errorf("%s: uid %q, title %q, description %q, %d variables that take the values of a label, of %d", b.File, b.UID, b.Title, b.Description, len(vars), len(b.Templating.List))
		}
		for name, v := range vars {
			if of, err := s.Check(v[0]); err != nil || !of[v[1]] {
				t.Errorf("%s: variable %s: %v", b.File, name, err)
			}
		}
		for _, p := range b.Panels {
			if p.Type == "row" {
				continue
			}
			if p.FieldConfig.Defaults.Unit == "" || p.Description == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has unit %q, description %q, %d queries", b.File, p.Title, p.FieldConfig.Defaults.Unit, p.Description, len(p.Targets))
			}
			for _, q := range p.Targets {
				of, err := s.Check(q.Filled("1m"))
				if err != nil {
					t.Errorf("%s: panel %q: %v", b.File, p.Title, err)
					continue
				}
				for _, label := range q.Labels() {
					if !of[label] {
						t.Errorf("%s: panel %q: the legend names %s, the result has %v", b.File, p.Title, label, of)
					}
				}
			}
		}
	}
}

// A panel has a number of its own, and room of its own in the 24 columns of Grafana's grid.
func TestBoard_PanelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	for _, b := range readBoards(t) {
		ids, cells := map[int]string{}, map[[2]int]string{}
		for _, p := range b.Panels {
			if other, taken := ids[p.ID]; taken {
				t.Errorf("%s: panels %q and %q have id %d", b.File, other, p.Title, p.ID)
			}
			ids[p.ID] = p.Title
			at := p.GridPos
			if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
				t.Errorf("%s: panel %q is at %+v", b.File, p.Title, at)
			}
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other, taken := cells[[2]int{x, y}]; taken && other != p.Title {
						t.Errorf("%s: panels %q and %q overlap at column %d, line %d", b.File, other, p.Title, x, y)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
