package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"text/template"
)

// A picture has a panel for each of its workloads.
type picture struct {
	file, title string
	panels      []panel
}

// A panel is a chart with a bar for each program.
type panel struct {
	workload, title string
	of              func(result) figure
	log             bool // the axis is logarithmic
}

var pictures = []picture{
	{"peers-rates.svg", "Records per second of each program", []panel{
		{"healthy", "healthy: records per second", func(r result) figure { return r.Rate }, false},
		{"dead", "dead: records per second that fail, until their dead letters are written", func(r result) figure { return r.Rate }, false},
	}},
	{"peers-poison.svg", "Latency of healthy records beside poison", []panel{
		{"poison", "poison: p99 latency of healthy records in ms, logarithmic", func(r result) figure { return r.P99 }, true},
	}},
}

// writePlots draws what there are results for.
func writePlots(folder string, results []result) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, p := range pictures {
		drawn, err := p.draw(results)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", p.file, err)
		}
		if drawn == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, p.file), drawn, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Sizes of a picture, in its units.
const (
	plotWidth = 780
	barsFrom  = 96
	barsWide  = 400
	valuesAt  = barsFrom + barsWide + 12
	rowHigh   = 26
	titleHigh = 40
)

// plotText is the template of a picture.
//
//go:embed plot.svg.tmpl
var plotText string

var plotTemplate = template.Must(template.New("plot").Parse(plotText))

// A bar is one of the drawing, with its place.
type bar struct {
	Name, Value         string
	Y, Middle           float64 // of its row: the top of the bar, and the line of its text
	X, Wide, Low, High  float64 // of the bar, and of the line that shows the range
	Own, Failed, Spread bool
}

// A heading stands over a panel's bars.
type heading struct {
	Text string
	Y    float64
}

// draw returns nothing if there are no results for it.
func (p picture) draw(results []result) ([]byte, error) {
	d := struct {
		Title                 string
		Width, Height, Values float64
		Headings              []heading
		Bars                  []bar
	}{Title: p.title, Width: plotWidth, Values: valuesAt}
	for _, panel := range p.panels {
		var mine []result
		for _, r := range results {
			if r.Workload == panel.workload {
				mine = append(mine, r)
			}
		}
		if len(mine) == 0 {
			continue
		}
		d.Headings = append(d.Headings, heading{panel.title, d.Height + titleHigh - 14})
		d.Height += titleHigh
		d.Bars = append(d.Bars, panel.bars(mine, d.Height)...)
		d.Height += rowHigh * float64(len(mine))
	}
	if len(d.Bars) == 0 {
		return nil, nil
	}
	d.Height += 12
	var b bytes.Buffer
	err := plotTemplate.Execute(&b, d)
	return b.Bytes(), err
}

// bars are the panel's, from a height on.
func (p panel) bars(results []result, y float64) (bars []bar) {
	at := p.axis(results)
	for i, r := range results {
		f := p.of(r)
		top := y + float64(i)*rowHigh
		b := bar{Name: r.Program, Y: top + 4, Middle: top + 17, X: barsFrom, Own: r.Program == "siding", Failed: r.Failed != ""}
		if b.Failed {
			b.Value = "failed"
		} else {
			b.Wide, b.Low, b.High = at(f.Median), barsFrom+at(f.Min), barsFrom+at(f.Max)
			b.Value, b.Spread = f.String(), f.Max > f.Min
		}
		bars = append(bars, b)
	}
	return bars
}

// axis maps values to lengths: the largest to the whole width.
func (p panel) axis(results []result) func(float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, r := range results {
		if f := p.of(r); r.Failed == "" && f.Max > 0 {
			low, high = min(low, f.Min), max(high, f.Max)
		}
	}
	if !p.log {
		return func(v float64) float64 { return round(barsWide * v / high) }
	}
	from := math.Floor(math.Log10(low)) // a power of ten, left of which there is nothing
	return func(v float64) float64 {
		return round(barsWide * (math.Log10(v) - from) / max(math.Log10(high)-from, 1e-9))
	}
}

// round keeps the drawing's numbers short.
func round(v float64) float64 { return math.Round(v*10) / 10 }
