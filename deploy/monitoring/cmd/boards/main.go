// Command boards writes the boards of package monitoring as Grafana imports them:
//
//	cd deploy/monitoring && go run ./cmd/boards ../grafana
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sidingkafka/siding/deploy/monitoring"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: boards FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	for _, b := range monitoring.Boards() {
		text, err := b.JSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, b.File), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
