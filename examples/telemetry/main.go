// Command telemetry shows what a team sees of its consumer in OpenTelemetry: a span per attempt, linked to the producer's span
// and to the attempt before, and metrics of what runs, what waits and what goes where. It has a broker inside the process:
//
//	go run .
//
// A service does the same with exporters of its own; siding knows only OpenTelemetry's API, and takes the providers from
// Config or, where these are nil, the global ones.
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
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		stop()
		os.Exit(1)
	}
}
