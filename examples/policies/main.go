// Command policies has a policy for each kind of topic, and prints what each does with a record:
//
//	go run ./examples/policies
//
// policies.go is what a team would write: how often and when a topic's records are tried, and where
// they go in the end. serve.yaml and rules.yaml say who brings them back from there. The table in
// docs/policies.md has the same, with the reasons. The program runs the policies on a broker inside
// the process with all delays divided by a thousand, so that an hour takes 3.6 s.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		stop()
		os.Exit(1)
	}
}
