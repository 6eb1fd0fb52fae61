package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// A program that lost a record in one round has no figures of the others.
func TestJudge_TakesTheMedianUnlessARoundFailed(t *testing.T) {
	t.Parallel()
	w := workload{"poison", work.Job{Rate: 1}}
	turn := func(seconds, p99 float64) try {
		return try{records: 100, rep: work.Report{Seconds: seconds, CPU: seconds / 10, P99: p99, Healthy: seconds}}
	}
	tries := []try{turn(1, 3), turn(4, 5), turn(2, 90)}
	want := result{
		Workload: "poison", Program: "siding",
		Rate: figure{50, 25, 100}, CPU: figure{2000, 1000, 4000}, P99: figure{5, 3, 90}, Healthy: figure{2, 1, 4},
	}
	if got := judge(w, "siding", tries); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	tries[1].err = errors.New("lost: 1 of 3 dead letters are missing")
	want = result{Workload: "poison", Program: "siding", Failed: "lost: 1 of 3 dead letters are missing"}
	if got := judge(w, "siding", tries); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The document has the table and the plots of the last run, and all else as it was.
func TestWriteDoc_ReplacesTheFigures(t *testing.T) {
	t.Parallel()
	table := markdown([]result{
		{Workload: "healthy", Program: "siding", Rate: figure{1_234_567, 999, 2_000_000}, CPU: figure{0.456, 0.4, 12.34}},
		{Workload: "healthy", Program: "sarama", Rate: figure{17, 17, 17}, CPU: figure{1, 1, 1}},
		{Workload: "dead", Program: "sarama", Failed: "lost | all"},
		{Workload: "poison", Program: "siding", CPU: figure{1, 1, 1}, P99: figure{2, 2, 2}, Healthy: figure{3, 3, 3}},
	})
	dir := t.TempDir()
	doc := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(doc, []byte("before\n"+docBegin+"\nold\n"+docEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeDoc(doc, filepath.Join(dir, "pictures"), table); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"before", docBegin, "",
		"| workload | | siding | sarama |",
		"|---|---|---|---|",
		"| healthy | records per second | 1,230,000 (999 … 2,000,000) | 17 (17 … 17) |",
		"| healthy | CPU µs per record | 0.456 (0.4 … 12.3) | 1 (1 … 1) |",
		"| dead | records per second | | **failed**: lost / all |",
		"| poison | p99 of healthy ones, ms | 2 (2 … 2) | |",
		"| poison | last healthy one after, s | 3 (3 … 3) | |",
		"| poison | CPU µs per record | 1 (1 … 1) | |",
		"", "![Records per second of each program](pictures/peers-rates.svg)",
		"", "![Latency of healthy records beside poison](pictures/peers-poison.svg)",
		"", docEnd, "after", "",
	}, "\n")
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := writeDoc(doc, dir, ""); err != nil {
		t.Errorf("the next run: %v", err)
	}
	if err := os.WriteFile(doc, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeDoc(doc, dir, ""); err == nil || !strings.Contains(err.Error(), "no place for the figures") {
		t.Errorf("of a document without a place: %v", err)
	}
}
