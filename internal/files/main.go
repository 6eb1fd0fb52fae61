// Files writes the tables of docs/architecture.md that say what each folder and each family of
// files is for. Their text is that of the code: the first sentence of a package comment, or of the
// first comment of a family's main file.
//
//	go run ./internal/files [-C checkout]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run writes the tables of a checkout's page, and reports what keeps it from that.
func run(args []string, problems io.Writer) (code int) {
	flags := flag.NewFlagSet("files", flag.ContinueOnError)
	flags.SetOutput(problems)
	dir := flags.String("C", ".", "the checkout")
	if flags.Parse(args) != nil {
		return 2
	}
	name := filepath.Join(*dir, "docs", "architecture.md")
	old, err := os.ReadFile(name)
	if err == nil {
		var text string
		if text, err = page(string(old), os.DirFS(*dir)); err == nil && text != string(old) {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintf(problems, "files: %v\n", err)
		return 1
	}
	return 0
}
