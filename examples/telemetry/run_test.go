package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheExampleShowsSpansAndMetricsAndNoSecret(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must(t, run(t.Context(), &out))
	text := out.String()
	for _, want := range []string{
		"consumer process orders",
		"siding.tier=200ms",
		"Error: card ****: refused",
		"follows span 1\n         follows span 4\n", // the producer's, and the first attempt's
		"siding.outcome=dead_lettered",
		"siding.to=dlq",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "4111") {
		t.Errorf("the card's number is in:\n%s", text)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(\S+) \[(\S+)\]$`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	want := []string{
		"messaging.process.duration", "siding.commits.failing", "siding.delivery.lateness", "siding.forwards.inflight", "siding.guard.time", "siding.guards", "siding.handled.records", "siding.handlers.stuck", "siding.held.full", "siding.lag", "siding.lanes",
		"siding.members", "siding.offset.gaps",
		"siding.parked.records", "siding.parked.refetched", "siding.parked.released", "siding.retries.held", "siding.routed.records", "siding.transactions.awaited",
	}
	if !slices.Equal(names, want) {
		t.Errorf("metrics %q, want %q", names, want)
	}
}
