package main

import (
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/sidingkafka/siding/internal/measured"
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
	folder, err := filepath.Rel(filepath.Dir(path), plots)
	if err != nil {
		return err
	}
	for _, p := range pictures {
		text += fmt.Sprintf("\n![%s](%s)\n", p.title, filepath.ToSlash(filepath.Join(folder, p.file)))
	}
	return measured.Write(path, docBegin, docEnd, "\n\n"+text+"\n")
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
