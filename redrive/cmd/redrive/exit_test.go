package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

func TestExitCode_IsWhatItWas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{cli.ErrInterrupted, 1},
		{cli.OnTopic("READ", "orders.dlq", kerr.TopicAuthorizationFailed), 1},
		{cli.Usage(errors.New("x")), 2},
		{fmt.Errorf("list: %w", cli.Usage(errors.New("x"))), 2},
		{cli.Refuse("another run"), 4},
		{fmt.Errorf("run: %w", cli.Refuse("another run")), 4},
	} {
		if got := cli.ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
