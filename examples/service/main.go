// Command service has the architecture of ports and adapters, with siding at its edge:
//
//	go run ./examples/service
//
// billing/ is the domain: orders, charges, and the meaning of their errors. It imports only
// siding's package classify. gateway.go is the adapter to the payment provider. Only wire.go knows
// both Kafka and the domain: it turns the domain's method into a handler, and puts a
// consumer.Config around it. A test holds the domain's imports.
//
// The program starts a broker inside the process, charges five orders, some of which fail, and
// lists the dead letters.
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
		fmt.Fprintln(os.Stderr, "service:", err)
		stop()
		os.Exit(1)
	}
}
