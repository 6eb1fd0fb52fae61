package main

import (
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/internal/measured"
)

// The lines between which a document has the figures of a run.
const (
	docBegin = "<!-- peers: begin, written by `make peers BROKERS=… DOC=1` -->"
	docEnd   = "<!-- peers: end -->"
)

// markdown are the results as a table: a row for each figure of a workload, a column for each
// program.
func markdown(results []result) string {
	cells := map[string]map[string]result{} // by workload and program
	var workloads, programs []string
	for _, r := range results {
		if cells[r.Workload] == nil {
			workloads, cells[r.Workload] = append(workloads, r.Workload), map[string]result{}
		}
		if !slices.Contains(programs, r.Program) {
			programs = append(programs, r.Program)
		}
		cells[r.Workload][r.Program] = r
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| workload | | %s |\n|---|---|%s\n", strings.Join(programs, " | "), strings.Repeat("---|", len(programs)))
	for _, w := range workloads {
		is, first := cells[w], true
		for _, row := range rows {
			if !slices.ContainsFunc(programs, func(p string) bool { return row.of(is[p]) != figure{} || first && is[p].Failed != "" }) {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |", w, row.name)
			for _, p := range programs {
				r := is[p]
				switch f := row.of(r); {
				case first && r.Failed != "":
					fmt.Fprintf(&b, " **failed**: %s |", strings.ReplaceAll(r.Failed, "|", "/"))
				case f != figure{}:
					fmt.Fprintf(&b, " %v |", f)
				default:
					b.WriteString(" |")
				}
			}
			b.WriteString("\n")
			first = false
		}
	}
	return b.String()
}

// rows are the figures of a workload. The rate of one that is offered at a pace is that pace.
var rows = []struct {
	name string
	of   func(result) figure
}{
	{"records per second", func(r result) figure {
		if (r.P99 != figure{}) {
			return figure{}
		}
		return r.Rate
	}},
	{"p99 of healthy ones, ms", func(r result) figure { return r.P99 }},
	{"last healthy one after, s", func(r result) figure { return r.Healthy }},
	{"CPU µs per record", func(r result) figure { return r.CPU }},
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
