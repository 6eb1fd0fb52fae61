// Command redrive shows the dead letters of a Kafka cluster and redrives them after a fix, slowly;
// it stops by itself when they fail again. See redrive --help, and docs/redrive.md.
//
// A verb's file has its name, and what only that verb or its relatives need has its prefix (run_,
// show_, topics_). root and root_ are the command line, tool is what all verbs share, and session
// is a tool on a cluster that answered. The inner packages know no verb: connect finds the cluster,
// selection and edit read flags, output writes.
package main

// The start of the program.

import (
	"context"
	"os"
	"os/user"
	"time"
	_ "time/tzdata" // rules name time zones, and an image may have none

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
)

func main() {
	folder, err := os.UserConfigDir()
	if err != nil {
		folder = "" // then only --config names a configuration file
	}
	p := process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: connect.Environment{Getenv: os.Getenv, Folder: folder},
		now: time.Now,
	}
	if u, err := user.Current(); err == nil {
		p.user = u.Username
	}
	ctx, stop := interruptible(context.Background(), os.Stderr)
	code := run(ctx, p, os.Args[1:])
	stop()
	os.Exit(code)
}
