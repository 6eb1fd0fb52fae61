package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestExitCode_IsWhatItWas(t *testing.T) {
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
