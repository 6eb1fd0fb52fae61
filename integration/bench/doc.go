package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The lines between which a document has the figures of a run.
const (
	docBegin = "<!-- bench: begin, written by `go run ./bench -brokers … -doc …` -->"
	docEnd   = "<!-- bench: end -->"
)

// writeDoc puts the results into the document, in place of those that it has.
func writeDoc(path string, results []result, where string, at time.Time) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	doc, err := withFigures(old, figures(results, where, at))
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
func figures(results []result, where string, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nOn %s, %s.\n\n", at.Format(time.DateOnly), where)
	var missed []string
	for _, r := range results {
		if !r.OK {
			missed = append(missed, "`"+r.Name+"`")
		}
	}
	switch len(missed) {
	case 0:
		fmt.Fprintf(&b, "All %d goals were reached.\n", len(results))
	default:
		fmt.Fprintf(&b, "**%d of %d goals were missed**: %s.\n", len(missed), len(results), strings.Join(missed, ", "))
	}
	b.WriteString("\n| line | figure | smallest … largest round | goal | | absolute |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		verdict := "ok"
		if !r.OK {
			verdict = "**missed**"
		}
		var absolutes []string
		for _, a := range r.Absolute {
			absolutes = append(absolutes, a.String())
		}
		fmt.Fprintf(&b, "| %s | %.4g %s | %.4g … %.4g | %s | %s | %s |\n", r.Name, r.Ratio, r.Unit, r.Min, r.Max, r.Goal, verdict, strings.Join(absolutes, ", "))
	}
	b.WriteString("\n")
	return b.String()
}

// setting describes the brokers and the machine of the clients; the brokers may be elsewhere.
func setting(ctx context.Context, brokers []string) (string, error) {
	adm, err := kadm.NewOptClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return "", err
	}
	defer adm.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	versions, err := adm.ApiVersions(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the brokers' version: %w", err)
	}
	found := map[string]bool{}
	for _, v := range versions {
		if v.Err != nil {
			return "", fmt.Errorf("asking broker %d for its version: %w", v.NodeID, v.Err)
		}
		found[strings.TrimPrefix(v.VersionGuess(), "v")] = true
	}
	return fmt.Sprintf("%d broker(s) with the API of Kafka %s; clients on %s", len(versions), strings.Join(slices.Sorted(maps.Keys(found)), " and "), machine()), nil
}

// machine describes the client's machine.
func machine() string {
	model := fromProc("/proc/cpuinfo", "model name")
	memory := ""
	if kib, err := strconv.ParseInt(strings.TrimSuffix(fromProc("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		memory = fmt.Sprintf(", %.1f GiB of memory", float64(kib)/(1<<20))
	}
	return fmt.Sprintf("%d CPUs (%s)%s, %s, %s", runtime.NumCPU(), cmp.Or(model, runtime.GOARCH), memory, runtime.GOOS, runtime.Version())
}

// fromProc returns the first value of a key, and nothing where there is no such file: it is
// Linux's, and does not have each key on every kind of CPU.
func fromProc(file, key string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if k, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
