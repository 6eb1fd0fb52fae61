// Command telemetry shows a consumer's OpenTelemetry data. Each attempt has a span, linked to the
// producer's span and to the previous attempt. Metrics count the records that run, wait and leave.
// The broker is inside the process:
//
//	go run .
//
// A service does the same with exporters of its own. Siding depends on OpenTelemetry's API alone.
// It takes the providers from Config or, where these are nil, the global ones.
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
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		stop()
		os.Exit(1)
	}
}
