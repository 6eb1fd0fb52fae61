package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// Exit codes.
const (
	exitOK          = 0
	exitUnsound     = 1 // the numbers do not add up, or the run failed
	exitUsage       = 2
	exitInterrupted = 130 // as shells report Ctrl-C
)

const (
	perSecond = 100
	// limit bounds a run that makes no progress. Reading back and cleaning up may take patience
	// each on top of it.
	limit    = 20 * time.Second
	patience = 5 * time.Second
)

var tiers = []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	words := stdout
	if o.json {
		words = stderr
	}
	t, err := play(ctx, o, words, stderr)
	if t != nil {
		t.Interrupted = ctx.Err() != nil
		if o.json {
			err = errors.Join(err, json.NewEncoder(stdout).Encode(t))
		} else {
			t.print(stdout)
		}
	}
	switch {
	case ctx.Err() != nil && (t == nil || t.sound()):
		if err != nil {
			fmt.Fprintf(stderr, "quickstart: %v\n", err)
		}
		fmt.Fprintln(stderr, "quickstart: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitUnsound
	case !t.sound():
		return exitUnsound
	}
	return exitOK
}

// play produces, consumes, reads back and counts. The tally is nil if it did not get that far.
func play(interrupt context.Context, o options, words, stderr io.Writer) (t *tally, err error) {
	ctx, cancel := context.WithTimeoutCause(interrupt, limit, fmt.Errorf("not finished after %v", limit))
	defer cancel()
	c, err := open(ctx, o, tiers)
	defer func() { err = errors.Join(err, c.close(o.keep)) }()
	if err != nil {
		return nil, err
	}
	j := newJournal()
	tale := &story{w: words, start: time.Now()}
	siding, err := consumer.New(consumer.Config{
		Group:          c.group,
		Topics:         []string{c.siblings.Source},
		Kafka:          c.opts,
		Handler:        j.watch(consumer.Decode(consumer.JSON[order], charge), tale.retried),
		Policy:         consumer.Policy{Tiers: tiers},
		CommitInterval: 200 * time.Millisecond,
		DrainTimeout:   3 * time.Second,
		// The story reports everything below errors.
		Logger: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return nil, err
	}

	// The consumer has a context of its own, so that it continues while produced orders are in
	// flight.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	ended := make(chan error, 1)
	wg.Go(func() { ended <- siding.Run(background) })
	select {
	case <-siding.Ready():
	case err := <-ended:
		return nil, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	of := int(o.during.Seconds() * perSecond)
	fmt.Fprintf(words, "%d orders in %v on %s; retry tiers %v, then %s\n\n", of, o.during, c.name, tiers, c.siblings.DLQ)
	tale.start = time.Now()
	watching, stopWatching := context.WithCancel(background)
	defer stopWatching()
	wg.Go(func() { tale.healthy(watching, j) })
	followed := make(chan error, 1)
	wg.Go(func() { followed <- tale.follow(watching, c, j.deadLettered) })

	err = produce(ctx, c, j, of)
	if err == nil {
		err = awaitFinish(ctx, c, j, ended)
	}
	if interrupt.Err() != nil {
		err = nil // an interrupt is no error
	}
	stopWatching()
	stop()
	wg.Wait()
	err = errors.Join(err, <-followed)
	select {
	case e := <-ended:
		err = errors.Join(err, e)
	default: // awaitFinish has received it
	}

	reading, cancelReading := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancelReading()
	f, readErr := c.readBack(reading)
	if readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	return count(j.snapshot(), f), err
}

// produce writes the given number of orders at an even pace, and returns when all are acknowledged
// or ctx ends.
func produce(ctx context.Context, c *cluster, j *journal, of int) error {
	var mu sync.Mutex
	var first error
	pace := time.NewTimer(0)
	defer pace.Stop()
	start := time.Now()
	for n := range of {
		pace.Reset(time.Until(start.Add(time.Duration(n) * time.Second / perSecond)))
		select {
		case <-pace.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), flush(c.client))
		}
		r, id, healthy := newOrder(c.siblings.Source, n, of)
		j.producing(id, healthy)
		c.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			j.acknowledged(id, err == nil)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = fmt.Errorf("produce %s: %w", id, err)
				}
			}
		})
	}
	err := flush(c.client)
	j.noMore()
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(first, err)
}

func flush(cl *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return cl.Flush(ctx)
}

// awaitFinish waits until each order was handled or dead-lettered, or until the group has committed
// all records. In the second case no further outcome can follow, and the table shows what is
// missing.
func awaitFinish(ctx context.Context, c *cluster, j *journal, ended <-chan error) error {
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for idle := 0; idle < 2; {
		select {
		case <-j.finished:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			return errors.Join(errors.New("the consumer ended before all orders were finished"), err)
		case <-poll.C:
			idle++
			if !c.allCommitted(ctx) {
				idle = 0
			}
		}
	}
	return nil
}
