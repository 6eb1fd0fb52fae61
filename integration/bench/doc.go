package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// The lines between which a document has the figures of a run.
const (
	docBegin = "<!-- bench: begin, written by `go run ./bench -brokers … -doc …` -->"
	docEnd   = "<!-- bench: end -->"
)

// writeDoc puts the results into the document, in place of those that it has.
func writeDoc(path string, results []result, at time.Time) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	doc, err := withFigures(old, figures(results, machine(), at))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, doc, 0o644); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

// withFigures replaces the text between the two lines.
func withFigures(doc []byte, block string) ([]byte, error) {
	head, rest, found := bytes.Cut(doc, []byte(docBegin))
	_, tail, ended := bytes.Cut(rest, []byte(docEnd))
	if !found || !ended {
		return nil, fmt.Errorf("it has no place for the figures: add the lines %q and %q", docBegin, docEnd)
	}
	return bytes.Join([][]byte{head, []byte(docBegin), []byte(block), []byte(docEnd), tail}, nil), nil
}

// figures are the results as a table.
func figures(results []result, machine string, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nOn %s, %s:\n\n| line | figure | smallest … largest round | goal | |\n|---|---|---|---|---|\n", at.Format(time.DateOnly), machine)
	for _, r := range results {
		verdict := "ok"
		if !r.OK {
			verdict = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %.4g %s | %.4g … %.4g | %s | %s |\n", r.Name, r.Ratio, r.Unit, r.Min, r.Max, r.Goal, verdict)
	}
	b.WriteString("\n")
	return b.String()
}

// machine describes the client's machine; the broker may be elsewhere.
func machine() string {
	model := runtime.GOARCH
	// Linux only, and not on every kind of CPU
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d CPUs (%s), %s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.Version())
}
