// Command redrive shows the dead letters of a Kafka cluster and redrives them after a fix, slowly;
// it stops by itself when they fail again. See redrive --help, and docs/redrive.md.
//
// Each verb is a file of a room below internal, by what an operator does: look, run, resolve, move,
// servecmd and demo. They stand on cli, which has what all verbs share, and on subject, which finds
// the topics and letters that a verb is about. root puts them together. The inner packages below
// know no verb: connect finds the cluster, selection and edit read flags, output writes.
package main

// The start of the process.

import (
	"os"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root"
)

func main() { os.Exit(root.Main()) }
