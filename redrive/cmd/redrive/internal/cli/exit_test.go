package cli_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
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

// A broker that is lost in mid-run has answered before: nothing of the connection is missing.
func TestWithoutGuess_DropsTheClientsGuess(t *testing.T) {
	t.Parallel()
	for _, guess := range []string{
		"often happens if the client is using TLS when the broker is not expecting it: is TLS misconfigured on the client or the broker?",
		"often happens when the broker requires TLS but the client is using plaintext: is TLS missing?",
		"often happens when SASL is required but not provided: is SASL missing?",
	} {
		text := "redrive: orders.dlq: read: broker closed the connection immediately after a request was issued, which " + guess + "; redrive resume goes on"
		if got, want := cli.WithoutGuess(text), "redrive: orders.dlq: read: the broker hung up at once; redrive resume goes on"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// The words are the client's own.
	if got := cli.WithoutGuess((&kgo.ErrFirstReadEOF{}).Error()); got != "the broker hung up at once" {
		t.Errorf("the client says %q", got)
	}
}

func TestOnResource_NamesWhatTheUserMayNotDo(t *testing.T) {
	t.Parallel()
	blind, half := roottest.Guarded(t, nil), roottest.Guarded(t, []kfake.ACL{roottest.ACLOn("orders.dlq", kmsg.ACLOperationDescribe)})
	for _, c := range []struct {
		b    *roottest.Broker
		args []string
		code int
		data string
		want string
	}{
		{blind, []string{"show", "orders.dlq", "0:0"}, cli.ExitError, "", "not authorized: the user needs DESCRIBE on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation DESCRIBE --topic orders.dlq)"},
		{half, []string{"show", "orders.dlq", "0:0"}, cli.ExitError, "", "not authorized: the user needs READ on topic orders.dlq"},
		{blind, []string{"topics"}, cli.ExitDone, "", "or this user may see none"},
		{half, []string{"topics"}, cli.ExitDone, "orders.dlq", "warning: not authorized: the user needs DESCRIBE_CONFIGS on topic orders.dlq"},
	} {
		got := c.b.As("ann").Run(t, c.args...)
		roottest.Prints(t, got, c.code, c.data, c.want, c.args)
	}
}
