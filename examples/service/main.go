// Command service is a service of ports and adapters with siding at its edge:
//
//	go run ./examples/service
//
// billing/ is the domain: orders, charges, and what their errors mean. Of siding it imports classify alone. gateway.go is the
// adapter to the payment provider. wire.go is the only place that knows both Kafka and the domain: it makes a handler of the
// domain's method and a consumer.Config around it. A test keeps the domain's imports as they are.
//
// The program has a broker inside the process, charges five orders, some of which fail, and lists what became dead letters.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		stop()
		os.Exit(1)
	}
}
