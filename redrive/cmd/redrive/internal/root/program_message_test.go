package root

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

func TestInform_TakesNoInterruptForAnAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	tl, words := clitest.NewTool(r)
	cancel(cli.ErrInterrupted)
	err := cli.Confirm(ctx, tl, "x", 1)
	if !errors.Is(err, cli.ErrInterrupted) {
		t.Errorf("%v, want %v", err, cli.ErrInterrupted)
	}
	words.Reset() // the question
	inform(ctx, tl, nil, err)
	if got, want := words.String(), "redrive: interrupted, nothing was done\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
