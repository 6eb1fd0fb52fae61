package monitoring_test

import (
	"os"
	"testing"

	"github.com/sidingkafka/siding/deploy/monitoring"
)

// The files are what the program makes. cd deploy/monitoring && go run ./cmd/boards ../grafana
func TestBoards_AreWhatTheProgramMakes(t *testing.T) {
	t.Parallel()
	for _, b := range monitoring.Boards() {
		want, err := b.JSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(boards + b.File)
		if err != nil || string(got) != string(want) {
			t.Errorf("deploy/grafana/%s is not what the program makes (%v): cd deploy/monitoring && go run ./cmd/boards ../grafana", b.File, err)
		}
	}
	files, err := os.ReadDir(boards)
	if err != nil || len(files) != len(monitoring.Boards()) {
		t.Errorf("deploy/grafana has %d files, %v", len(files), err)
	}
}

// Each panel has a unit and a description, each query names metrics and labels that exist, and the
// legends name labels that the result has.
func TestBoards_NameWhatExists(t *testing.T) {
	t.Parallel()
	s := golden(t)
	for _, b := range monitoring.Boards() {
		for _, v := range b.Variables {
			if of, err := s.Check(v.Metric); err != nil || !of[v.Of] {
				t.Errorf("%s: variable %s: %v", b.File, v.Name, err)
			}
		}
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				if p.Unit == "" || p.Description == "" || len(p.Queries) == 0 {
					t.Errorf("%s: panel %q has unit %q, description %q, %d queries", b.File, p.Title, p.Unit, p.Description, len(p.Queries))
				}
				for _, q := range p.Queries {
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
}
