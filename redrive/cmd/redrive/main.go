// Command redrive shows the dead letters of a Kafka cluster and redrives them after a fix, slowly;
// it stops by itself when they fail again. See redrive --help, and docs/redrive.md.
package main

import (
	"context"
	"os"
	"os/user"
	"time"

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
