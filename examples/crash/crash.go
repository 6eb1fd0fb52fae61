// Package crash counts an incident: a record kills the process that runs it, and a supervisor
// starts the process again. It runs the incident with siding's isolation and without it. Each
// process is a real one, and dies by os.Exit in its handler; the broker is in the process of the
// test:
//
//	go test ./examples/crash -v
//
// docs/delivery.md has the table that it prints, and says how the record is found.
package crash

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// The incident: a partition of orders, one of which kills.
const (
	topic  = "orders"
	before = 20 // orders that are handled before it
	behind = 50 // and those behind it
	starts = 6  // so often the supervisor starts the process
)

// kills is the value of an order that kills the process.
const kills = "kills"

// exitCode is that of a process that was killed by an order.
const exitCode = 3

// bill is the handler. It writes each order that it has handled to a journal.
type bill struct{ journal *os.File }

func (b bill) handle(_ context.Context, r *kgo.Record) error {
	if string(r.Value) == kills {
		os.Exit(exitCode) // as a fatal signal in cgo does, or the kernel when memory is short
	}
	_, err := fmt.Fprintf(b.journal, "%s/%d/%d\n", r.Topic, r.Partition, r.Offset)
	return err
}

// configure returns the consumer's configuration. By default isolation is on.
func configure(b bill, withoutIsolation bool, kafka ...kgo.Opt) consumer.Config {
	cfg := consumer.Config{Group: "billing", Topics: []string{topic}, Handler: b.handle, Kafka: kafka}
	if withoutIsolation {
		cfg.Policy.CrashLimit = -1
	}
	return cfg
}

// counts are the numbers of one incident.
type counts struct {
	isolation string
	deaths    int
	never     int // orders behind the one that kills that never ran
	dead      int // dead letters
}

// table prints the incidents as a table of docs/delivery.md.
func table(all ...counts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| isolation | deaths in %d starts | of the %d behind it never ran | dead letters |\n|---|---|---|---|\n", starts, behind)
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", c.isolation, c.deaths, c.never, c.dead)
	}
	return b.String()
}
