package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
)

func newDemo(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show an incident and its end, on a broker in this process",
		Long: `Demo needs no cluster. It runs a consumer with a bug until 2,000 records are dead letters, fixes one of three causes,
and brings the letters of that one back; then those of another one, which is not fixed. It prints each command as one
would type it, and takes less than a minute. The rate and the window are set for that: leave them out in earnest.`,
		Example: "  redrive demo",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &demo{tool: t}
			return d.play(cmd.Context())
		},
	}
}

// demo is an incident in the life of a service.
type demo struct {
	*tool
	broker string
	bugs   atomic.Pointer[[]string]
}

// The causes, and how many of the records have each.
var demoCauses = []struct {
	class, message string
	records        int
}{
	{"tax.TableMiss", "no tax rate for region", 1200},
	{"payment.Declined", "the bank said no", 500},
	{"decode", "invalid character '<' looking for beginning of value", 300},
}

func (d *demo) play(ctx context.Context) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return fmt.Errorf("embedded broker: %w", err)
	}
	defer cluster.Close()
	d.broker = cluster.ListenAddrs()[0]
	stop, err := d.incident(ctx)
	if err != nil {
		return err
	}
	defer stop()

	const pace = "--rate 150 --ramp 2s --window 3s"
	d.tell("The service has put 2,000 records into orders.dlq. What happened?")
	if err := d.typed(ctx, exitDone, "summary orders.dlq"); err != nil {
		return err
	}
	d.tell("The tax table was out of date. It is fixed and rolled out; the other two causes are not. What would a run do?")
	d.fix("tax.TableMiss")
	if err := d.typed(ctx, exitDone, "plan orders.dlq --class tax.TableMiss "+pace); err != nil {
		return err
	}
	d.tell("One record goes first, and its outcome is awaited.")
	if err := d.typed(ctx, exitDone, "run orders.dlq --class tax.TableMiss "+pace+" --why OPS-4711"); err != nil {
		return err
	}
	d.tell("Somebody believes that the payments are well again, too. They are not.")
	if err := d.typed(ctx, exitReappeared, "run orders.dlq --class payment.Declined "+pace+" --why OPS-4712"); err != nil {
		return err
	}
	d.tell("It stopped by itself, at the first record. What is left, and what was done:")
	if err := d.typed(ctx, exitDone, "summary orders.dlq"); err != nil {
		return err
	}
	return d.typed(ctx, exitDone, "runs orders.dlq")
}

func (d *demo) tell(text string) { d.screen.Say("\n# %s", text) }

// typed runs a command as if it had been typed.
func (d *demo) typed(ctx context.Context, want int, line string) error {
	d.screen.Say("\n$ redrive %s", line)
	p := d.process
	env := p.env
	p.env = connect.Environment{Folder: env.Folder, Getenv: func(name string) string {
		if name == connect.Variable("brokers") {
			return d.broker
		}
		return env.Getenv(name)
	}}
	if got := run(ctx, p, strings.Fields(line)); got != want {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return fmt.Errorf("the command ended with exit code %d, where %d belongs to the story", got, want)
	}
	return nil
}

// fix takes a cause away.
func (d *demo) fix(class string) {
	left := slices.DeleteFunc(slices.Clone(*d.bugs.Load()), func(c string) bool { return c == class })
	d.bugs.Store(&left)
}

// incident starts the service and lets it fail until all records are dead letters.
func (d *demo) incident(ctx context.Context) (stop func(), err error) {
	var all []string
	for _, c := range demoCauses {
		all = append(all, c.class)
	}
	d.bugs.Store(&all)
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.broker))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 4, 1, nil, "orders"); err != nil {
		return nil, fmt.Errorf("create topic orders: %w", err)
	}
	c, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: []kgo.Opt{kgo.SeedBrokers(d.broker)}, Handler: d.handle,
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second, 5 * time.Second}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running) }()
	stop = func() {
		cancel()
		<-ended
	}
	var records []*kgo.Record
	for _, cause := range demoCauses {
		for i := range cause.records {
			records = append(records, &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "order-%d", i), Value: []byte(cause.class)})
		}
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		stop()
		return nil, fmt.Errorf("produce: %w", err)
	}
	return stop, d.wait(ctx, adm, ended, int64(len(records)))
}

// wait waits until all records are dead letters.
func (d *demo) wait(ctx context.Context, adm *kadm.Client, ended <-chan error, all int64) error {
	for {
		var there int64
		listed, err := adm.ListEndOffsets(ctx, "orders.dlq")
		if err != nil {
			return fmt.Errorf("list end offsets: %w", err)
		}
		listed.Each(func(o kadm.ListedOffset) { there += max(o.Offset, 0) })
		if there >= all {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			return fmt.Errorf("the service ended: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// handle is the service: it fails where a bug is left.
func (d *demo) handle(_ context.Context, r *kgo.Record) error {
	for _, cause := range demoCauses {
		if cause.class == string(r.Value) && slices.Contains(*d.bugs.Load(), cause.class) {
			return classify.Terminal(classify.As(errors.New(cause.message), cause.class))
		}
	}
	return nil
}
