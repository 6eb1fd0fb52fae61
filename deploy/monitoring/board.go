package monitoring

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Board is a dashboard of Grafana.
type Board struct {
	// File is its name in deploy/grafana, and UID what addresses of Grafana have.
	File, UID, Title, Description string
	Variables                     []Variable
	Rows                          []Row
}

// Variable is a choice at the top of a board: values of a label.
type Variable struct{ Name, Label, Metric, Of string }

// Row is a row of panels under a heading.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is a panel of a row. Each has a unit, and a description that says what it tells.
type Panel struct {
	Title, Description string
	Kind               Kind
	// Unit is one of Grafana's: short, s, bytes, percentunit and the like.
	Unit    string
	Queries []Query
}

// Kind is the kind of a panel.
type Kind string

// The kinds of panels.
const (
	Lines Kind = "timeseries"
	Stack Kind = "stack" // lines on top of each other
	Value Kind = "stat"
)

// Query is a query of a panel. Legend names its series.
type Query struct{ Expr, Legend string }

// Boards returns all boards.
func Boards() []Board { return []Board{deadLetters, service} }

// Grafana's grid has 24 columns.
const (
	columns    = 24
	lineHeight = 8
	statHeight = 4
)

type object = map[string]any

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// JSON returns the board as Grafana imports it.
func (b *Board) JSON() ([]byte, error) {
	variables := []object{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}
	for _, v := range b.Variables {
		variables = append(variables, object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": datasource, "refresh": 2, "sort": 1,
			"query": object{"qryType": 1, "query": "label_values(" + v.Metric + ", " + v.Of + ")", "refId": "variable"},
			"multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": []string{"All"}, "value": []string{"$__all"}},
		})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object{
		"uid": b.UID, "title": b.Title, "description": b.Description, "tags": []string{"siding"}, "schemaVersion": 39, "version": 1,
		"editable": true, "refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "timezone": "browser", "graphTooltip": 1,
		"templating": object{"list": variables}, "panels": b.panels(),
	})
	return out.Bytes(), err
}

// panels lays the rows out from top to bottom.
func (b *Board) panels() (all []object) {
	y := 0
	for _, row := range b.Rows {
		all = append(all, object{"id": len(all) + 1, "type": "row", "title": row.Title, "collapsed": false, "panels": []object{}, "gridPos": grid(0, y, columns, 1)})
		y++
		width, height := columns/len(row.Panels), statHeight
		for _, p := range row.Panels {
			if p.Kind != Value {
				height = lineHeight
			}
		}
		for i := range row.Panels {
			p := row.Panels[i].object()
			p["id"], p["gridPos"] = len(all)+1, grid(i*width, y, width, height)
			all = append(all, p)
		}
		y += height
	}
	return all
}

func grid(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

func (p *Panel) object() object {
	var targets []object
	for i, q := range p.Queries {
		t := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": q.Expr, "legendFormat": q.Legend, "range": true, "editorMode": "code"}
		if p.Kind == Value {
			t["range"], t["instant"] = false, true
		}
		targets = append(targets, t)
	}
	is := object{"type": string(p.Kind), "title": p.Title, "description": p.Description, "datasource": datasource, "targets": targets}
	defaults := object{"unit": p.Unit}
	switch p.Kind {
	case Value:
		is["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none", "graphMode": "area", "textMode": "auto"}
	default:
		is["type"] = "timeseries"
		custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
		if p.Kind == Stack {
			custom["fillOpacity"], custom["stacking"] = 60, object{"mode": "normal"}
		}
		defaults["custom"], defaults["min"] = custom, 0
		is["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	}
	is["fieldConfig"] = object{"defaults": defaults, "overrides": []object{}}
	return is
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
