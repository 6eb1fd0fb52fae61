package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// drawn are the widths of a picture's bars and its texts.
func drawn(t *testing.T, svg []byte) (widths []float64, texts string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return widths, texts
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch e := token.(type) {
		case xml.CharData:
			texts += string(e) + "\n"
		case xml.StartElement:
			for _, a := range e.Attr {
				if w, err := strconv.ParseFloat(a.Value, 64); err == nil && a.Name.Local == "width" && e.Name.Local == "rect" {
					widths = append(widths, w)
				}
			}
		}
	}
}

// A picture has a bar for each program, as long as its figure, and says which program failed.
func TestWritePlots_DrawsResults(t *testing.T) {
	t.Parallel()
	rate := func(workload, program string, v float64) result {
		return result{Workload: workload, Program: program, Rate: figure{v, v / 2, v}}
	}
	dir := t.TempDir()
	if err := writePlots(dir, []result{
		rate("healthy", "siding", 1_000_000), rate("healthy", "sarama", 250_000),
		{Workload: "healthy", Program: "watermill", Failed: "lost: 1 of 2 <records>"},
		rate("dead", "siding", 10), rate("dead", "sarama", 20),
		{Workload: "poison", Program: "siding", P99: figure{1, 1, 1}},
		{Workload: "poison", Program: "sarama", P99: figure{1000, 1000, 1000}},
		{Workload: "poison", Program: "watermill", P99: figure{10, 10, 10}},
	}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct {
		widths string
		texts  []string
	}{
		"peers-rates.svg":  {"[400 100 200 400]", []string{"siding", "sarama", "watermill", "failed", "1,000,000 (500,000 … 1,000,000)", "10 (5 … 10)"}},
		"peers-poison.svg": {"[0 400 133.3]", []string{"siding", "watermill", "1,000 (1,000 … 1,000)"}},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		widths, texts := drawn(t, svg)
		if got := fmt.Sprint(widths); got != want.widths {
			t.Errorf("%s: bars are %s wide, want %s", file, got, want.widths)
		}
		for _, text := range want.texts {
			if !strings.Contains(texts, text) {
				t.Errorf("%s does not say %q", file, text)
			}
		}
	}
}

func TestWritePlots_DrawsNothingWithoutResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writePlots(dir, []result{{Workload: "keyed", Program: "siding"}}); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("there are %v, %v", files, err)
	}
}
