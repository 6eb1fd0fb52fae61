package demo

// The verb that shows an incident and its end, on a broker in this process.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/servecmd"
	"github.com/sidingkafka/siding/serve"
)

// demoTime is how long the demo may take.
const demoTime = time.Minute

var errDemoTime = errors.New("the demo takes more than a minute, so it was stopped: this machine is too busy for it")

// A Shell runs a command line, and returns its exit code.
type Shell func(ctx context.Context, p cli.Process, args []string) int

// New makes the verb demo, which types commands into a shell.
func New(t *cli.Tool, run Shell) *cobra.Command {
	var serves bool
	var listen string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show an incident and its end, on a broker in this process",
		Long: `Demo needs no cluster. It runs a consumer with bugs until 2,000 records are dead letters, and fixes one of three causes.
It redrives the letters of that cause, then those of another one, which is not fixed. It prints each command as you
would type it, and takes less than a minute. The rate and the window are set to keep it short: omit them in practice.`,
		Example: "  redrive demo\n  redrive demo --serve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if serves {
				return serveDemo(cmd.Context(), t, listen)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), demoTime, errDemoTime)
			defer cancel()
			err := playDemo(ctx, t, run)
			if err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&serves, "serve", false, "run a server over the incident, until it is interrupted, instead of the commands")
	cmd.Flags().StringVar(&listen, "listen", "", "with --serve: `address` of the HTTP server, host:port")
	return cmd
}

// tax is the bug that is fixed.
var tax = Bug{Class: "tax.TableMiss", Message: "no tax rate for region", Records: 1200}

// startIncident starts the demo's broker and service.
func startIncident(t *cli.Tool) (*Incident, error) {
	var network []kfake.Opt
	if t.Listen != nil {
		network = []kfake.Opt{kfake.ListenFn(t.Listen), kfake.Ports(9092)}
	}
	return StartIncidentOn(network, []kgo.Opt{kgo.Dialer(t.Env.Dial)}, tax,
		Bug{Class: "payment.Declined", Message: "the bank said no", Records: 500},
		Bug{Class: "decode", Message: "invalid character '<' looking for beginning of value", Records: 300})
}

// serveDemo runs a server over an incident that goes on: some records fail each second.
func serveDemo(ctx context.Context, t *cli.Tool, listen string) error {
	c, err := t.Flags.Redaction(t.Env)
	if err != nil {
		return cli.Usage(err)
	}
	i, err := startIncident(t)
	if err != nil {
		return err
	}
	defer i.Stop()
	t.Screen.Print("# A broker in this process, at %s, and a service that reads the topic orders.\n# The console is at the address below, until Ctrl+C.", i.Address)
	if _, err := i.Fail(ctx); err != nil {
		return err
	}
	going, cancel := context.WithCancel(ctx)
	var goes sync.WaitGroup
	goes.Go(func() { i.goOn(going) })
	defer goes.Wait()
	defer cancel()
	return servecmd.RunServer(ctx, &cli.Session{Tool: t, Cluster: c, Kafka: i.kafka}, serve.Config{Listen: listen})
}

// demoPace makes a run short enough to be watched.
const demoPace = "--rate 150 --ramp 2s --window 3s"

// playDemo plays the incident. It counts the records that it reports at the end.
func playDemo(ctx context.Context, t *cli.Tool, run Shell) error {
	i, err := startIncident(t)
	if err != nil {
		return err
	}
	defer i.Stop()
	t.Screen.Print("# A broker in this process, at %s, and a service that reads the topic orders.", i.Address)
	failed, err := i.Fail(ctx)
	if err != nil {
		return err
	}
	d := &demo{Tool: t, Incident: i, run: run}

	d.narrate("It has put %d records into orders.dlq. What happened?", failed)
	d.types(ctx, cli.ExitDone, "summary orders.dlq")
	d.narrate("The tax table was out of date. A new one is rolled out now; the other two causes are still there.\nWhat would a run do?")
	i.Fix(tax.Class)
	d.types(ctx, cli.ExitDone, "plan orders.dlq --class tax.TableMiss "+demoPace)
	d.narrate("The run sends one record first, the canary, and waits for its outcome.")
	d.types(ctx, cli.ExitDone, "run orders.dlq --class tax.TableMiss "+demoPace+" --why OPS-4711")
	d.narrate("An operator believes that the payments are fixed, too. They are not.")
	d.types(ctx, cli.ExitFailedAgain, "run orders.dlq --class payment.Declined "+demoPace+" --why OPS-4712")
	d.narrate("The run aborted by itself, with exit code 3. What was sent, and what is left?")
	d.types(ctx, cli.ExitDone, "runs orders.dlq")
	d.types(ctx, cli.ExitDone, "summary orders.dlq")
	if d.err != nil {
		return d.err
	}
	records, calls := i.Processed()
	if records != tax.Records || calls != records {
		return fmt.Errorf("the service has processed %d records in %d calls, but the demo expects %d, each once", records, calls, tax.Records)
	}
	d.narrate("The service has processed %d records, each once. The others wait for their fix.", records)
	return nil
}

// A demo prints and runs the commands of the story. It stops at the first command that ends with
// another exit code than expected.
type demo struct {
	*cli.Tool
	*Incident
	run Shell
	err error
}

func (d *demo) narrate(format string, args ...any) {
	if d.err == nil {
		d.Screen.Print("\n# "+strings.ReplaceAll(format, "\n", "\n# "), args...)
	}
}

// types runs a command as if the user had typed it, in a shell whose environment has the demo's
// broker and nothing of the user's own clusters.
func (d *demo) types(ctx context.Context, want int, line string) {
	if d.err != nil {
		return
	}
	d.Screen.Print("\n$ redrive %s", line)
	p, getenv := d.Process, d.Env.Getenv
	p.Env = connect.Environment{Dial: d.Env.Dial, Getenv: func(name string) string {
		switch {
		case name == connect.Variable("brokers"):
			return d.Address
		case slices.Contains([]string{"NO_COLOR", "TERM"}, name):
			return getenv(name)
		}
		return ""
	}}
	if got := d.run(ctx, p, strings.Fields(line)); got != want {
		d.err = fmt.Errorf("the command ended with exit code %d, but the demo expects %d", got, want)
	}
}
