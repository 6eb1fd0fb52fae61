package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What the documentation and the verbs' help tell people to type has verbs and flags that are there.
func TestTheCommandsThatAreDocumentedExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, file := range append(files, "../../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, commandsIn(string(text))...)
	}
	if len(commands) < 10 {
		t.Errorf("the documentation has %d commands: %q", len(commands), commands)
	}
	for _, verb := range append(newCommands().Commands(), newCommands()) {
		commands = append(commands, commandsIn(verb.Example)...)
	}
	for _, command := range commands {
		if err := parse(newCommands(), command); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// commandsIn finds the lines of a text that are commands: indented, as code is.
func commandsIn(text string) (commands []string) {
	for _, m := range regexp.MustCompile(`(?m)^\s{2,}(?:\$ |[A-Z_]+=\S+ )?redrive (.*?)(?: +# .*)?$`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "[") {
			commands = append(commands, m[1])
		}
	}
	return commands
}

// parse takes a command as the program would, and does not run it.
func parse(root *cobra.Command, command string) error {
	var args []string
	for _, arg := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(command, -1) {
		if arg == ">" || arg == "|" || arg == "<" {
			break
		}
		args = append(args, strings.Trim(arg, `'"`))
	}
	verb, args, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := verb.ParseFlags(args); err != nil {
		return err
	}
	return verb.ValidateArgs(verb.Flags().Args())
}
