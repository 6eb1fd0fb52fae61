// Command quickstart shows siding at work, on a machine that has only Go:
//
//	go run ./examples/quickstart
//
// It starts a broker inside the process and produces orders. Most are good. Some fail for a while,
// some fail for good, and some cannot be decoded. Each live line reports what happens to an order
// that fails, while the others keep flowing.
//
// At the end the program reads the topics back, compares them with a journal of the handler's
// calls, record by record, and prints a table. Exit codes: 0 when every order is in exactly one
// place, 1 when not, 2 after a wrong flag, 130 when it was interrupted and nothing was lost.
//
// With -brokers it uses a Kafka cluster instead, with topics of its own, which it deletes at the
// end.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
