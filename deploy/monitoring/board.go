package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Board is what a dashboard of Grafana asks Prometheus.
type Board struct {
	File string // its name in deploy/grafana

	UID, Title, Description string
	Templating              struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []Panel
}

// Panel is a panel of a board, or the heading of a row.
type Panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []Query
}

// Query is a query of a panel. Legend names its series.
type Query struct {
	Expr   string
	Legend string `json:"legendFormat"`
}

// ReadBoards reads the boards in a folder.
func ReadBoards(folder string) (all []Board, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, err
		}
		b := Board{File: filepath.Base(file)}
		if err := json.Unmarshal(text, &b); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, b)
	}
	return all, nil
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// Variables returns the metric and the label of each variable of the board that takes the values of
// a label, by its name.
func (b *Board) Variables() map[string][2]string {
	all := map[string][2]string{}
	for _, v := range b.Templating.List {
		if is, ok := v.Query.(map[string]any); ok {
			text, _ := is["query"].(string)
			if m := labelValues.FindStringSubmatch(text); m != nil {
				all[v.Name] = [2]string{m[1], m[2]}
			}
		}
	}
	return all
}

// Filled returns the query with a value for each of Grafana's variables: all values of the board's,
// and rates over a range.
func (q *Query) Filled(interval string) string {
	return strings.NewReplacer("$__rate_interval", interval, "$topic", ".*", "$source", ".*", "$group", ".*").Replace(q.Expr)
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Labels returns the labels that the legend names.
func (q *Query) Labels() (all []string) {
	for _, m := range legendLabel.FindAllStringSubmatch(q.Legend, -1) {
		all = append(all, m[1])
	}
	return all
}
