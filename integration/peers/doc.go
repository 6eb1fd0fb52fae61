package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// The lines between which a document has the figures of a run.
const (
	docBegin = "<!-- peers: begin, written by `make peers BROKERS=… DOC=1` -->"
	docEnd   = "<!-- peers: end -->"
)

// markdown are the results as a table.
func markdown(results []result) string {
	var b strings.Builder
	b.WriteString("| workload | program | records per second | CPU µs per record | p99 of healthy ones, ms | last healthy one after, s |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		switch {
		case r.Failed != "":
			fmt.Fprintf(&b, "| %s | %s | **failed**: %s | | | |\n", r.Workload, r.Program, strings.ReplaceAll(r.Failed, "|", "/"))
		case r.P99 != figure{}: // its rate is what was offered
			fmt.Fprintf(&b, "| %s | %s | | %v | %v | %v |\n", r.Workload, r.Program, r.CPU, r.P99, r.Healthy)
		default:
			fmt.Fprintf(&b, "| %s | %s | %v | %v | | |\n", r.Workload, r.Program, r.Rate, r.CPU)
		}
	}
	return b.String()
}

// writeDoc puts the text and the plots into the document, in place of those that it has.
func writeDoc(path, plots, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	folder, err := filepath.Rel(filepath.Dir(path), plots)
	if err != nil {
		return err
	}
	for _, p := range pictures {
		text += fmt.Sprintf("\n![%s](%s)\n", p.title, filepath.ToSlash(filepath.Join(folder, p.file)))
	}
	head, rest, found := bytes.Cut(old, []byte(docBegin))
	_, tail, closed := bytes.Cut(rest, []byte(docEnd))
	if !found || !closed {
		return fmt.Errorf("%s has no place for the figures: add the lines %q and %q", path, docBegin, docEnd)
	}
	doc := bytes.Join([][]byte{head, []byte(docBegin), []byte("\n\n" + text + "\n"), []byte(docEnd), tail}, nil)
	return os.WriteFile(path, doc, 0o644)
}

// setting describes the brokers and the machine of the programs; the brokers may be elsewhere.
func setting(ctx context.Context, brokers []string) (string, error) {
	r, err := connect(brokers)
	if err != nil {
		return "", err
	}
	defer r.cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	versions, err := r.admin.ApiVersions(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the brokers' version: %w", err)
	}
	guess := ""
	for _, v := range versions {
		guess, err = strings.TrimPrefix(v.VersionGuess(), "v"), errors.Join(err, v.Err)
	}
	return fmt.Sprintf("%d broker(s) with the API of Kafka %s; programs on %s; %s", len(versions), guess, machine(), libraries()), err
}

// libraries are those that are compared, with their versions.
func libraries() string {
	var all []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name := compared[m.Path]; name != "" {
				all = append(all, name+" "+m.Version)
			}
		}
	}
	return strings.Join(all, ", ")
}

var compared = map[string]string{
	"github.com/twmb/franz-go":                    "franz-go",
	"github.com/IBM/sarama":                       "sarama",
	"github.com/segmentio/kafka-go":               "kafka-go",
	"github.com/ThreeDotsLabs/watermill":          "watermill",
	"github.com/ThreeDotsLabs/watermill-kafka/v3": "watermill-kafka",
}

// machine describes the machine of the programs.
func machine() string {
	memory := ""
	if kib, err := strconv.ParseInt(strings.TrimSuffix(fromProc("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		memory = fmt.Sprintf(", %.1f GiB of memory", float64(kib)/(1<<20))
	}
	return fmt.Sprintf("%d CPUs (%s)%s, %s, %s", runtime.NumCPU(), cmp.Or(fromProc("/proc/cpuinfo", "model name"), runtime.GOARCH), memory, runtime.GOOS, runtime.Version())
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
