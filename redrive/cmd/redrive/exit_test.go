package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func TestExitCodesAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{errInterrupted, 1},
		{onTopic("READ", "orders.dlq", kerr.TopicAuthorizationFailed), 1},
		{usage(errors.New("x")), 2},
		{fmt.Errorf("list: %w", usage(errors.New("x"))), 2},
		{refuse("another run"), 4},
		{fmt.Errorf("run: %w", refuse("another run")), 4},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestNothingIsDoneUnlessTheCountIsTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed string
		want  string // none: go on
	}{
		{"40\n", ""},
		{" 40 \r\n", ""},
		{"40", ""},
		{"", "40 was not typed, nothing was done: --yes skips the question"},
		{"\n", "40 was not typed"},
		{"y\n", `"y" is not 40, nothing was done`},
		{"4\n0\n", `"4" is not 40`},
	} {
		tl, words := quietTool(strings.NewReader(c.typed))
		err := confirm(t.Context(), tl, "40 letters of orders.dlq will be discarded", 40)
		switch {
		case c.want == "" && err != nil, c.want != "" && (exitCode(err) != exitRefused || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want %q", c.typed, err, c.want)
		}
		if got, want := words.String(), "40 letters of orders.dlq will be discarded; type 40 to continue:\n"; got != want {
			t.Errorf("it asks %q, want %q", got, want)
		}
	}
}

// A broker that is lost in mid-run has answered before: nothing of the connection is missing.
func TestTheClientsGuessAtAConnectionIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, guess := range []string{
		"often happens if the client is using TLS when the broker is not expecting it: is TLS misconfigured on the client or the broker?",
		"often happens when the broker requires TLS but the client is using plaintext: is TLS missing?",
		"often happens when SASL is required but not provided: is SASL missing?",
	} {
		text := "redrive: orders.dlq: read: broker closed the connection immediately after a request was issued, which " + guess + "; redrive resume goes on"
		if got, want := withoutGuess(text), "redrive: orders.dlq: read: the broker hung up at once; redrive resume goes on"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// The words are the client's own.
	if got := withoutGuess((&kgo.ErrFirstReadEOF{}).Error()); got != "the broker hung up at once" {
		t.Errorf("the client says %q", got)
	}
}

func TestAnInterruptIsNoAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	tl := &tool{process: process{stdin: r}, screen: output.NewScreen(io.Discard, io.Discard, func(string) string { return "" })}
	cancel(errInterrupted)
	err := confirm(ctx, tl, "x", 1)
	if !errors.Is(err, errInterrupted) {
		t.Errorf("%v, want %v", err, errInterrupted)
	}
	var words bytes.Buffer
	tl.screen = output.NewScreen(io.Discard, &words, func(string) string { return "" })
	tl.inform(ctx, nil, err)
	if got, want := words.String(), "redrive: interrupted, nothing was done\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
