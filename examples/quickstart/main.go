// Command quickstart shows siding at work, on a machine that has only Go:
//
//	go run ./examples/quickstart
//
// It starts a broker inside the process, produces orders, most of them good, some that fail for a while, some that fail for
// good, some that cannot be decoded, and tells line by line what becomes of those that fail while the others keep flowing. At
// the end it reads the topics back, compares them with a journal of what the handler did, record by record, and prints a
// table. It exits with 0 when every order is in exactly one place, with 1 when not, with 2 after a wrong flag, and with 130
// when it was interrupted and nothing was lost.
//
// With -brokers it does the same on a Kafka cluster, on topics of its own, which it deletes at the end.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C is not ours: it ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
