package run_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A colleague stops a run and resumes it at another rate. Between the two, status --follow ended
// with an error; and at its beginning it showed less than status had just shown.
func TestFollowRun_GoesOnWithAResumedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 120})
		n.Fix("tax")
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		var all sync.WaitGroup
		all.Go(func() {
			n.Invoke(ctx, io.Discard, "run", "orders.dlq", "--yes", "--ramp", "0", "--rate", "2", "--window", "20s")
		})
		time.Sleep(24*time.Second + 500*time.Millisecond) // the last heartbeat is some seconds old
		begun := n.OnlyRun()
		run := "orders.dlq/" + begun.ID
		var status, follow bytes.Buffer
		n.Invoke(t.Context(), &status, "status", run)
		code := -1
		all.Go(func() { code = n.Invoke(t.Context(), &follow, "status", run, "--follow") })
		time.Sleep(7 * time.Second)
		stop(cli.ErrInterrupted)
		time.Sleep(12 * time.Second)
		all.Go(func() { n.Invoke(t.Context(), io.Discard, "resume", run, "--rate", "5") })
		all.Wait()
		var plain, first int
		_, words, _ := strings.Cut(status.String(), "\nSENT ")
		if _, err := fmt.Sscan(words, &plain); err != nil {
			t.Error(err)
		}
		_, words, _ = strings.Cut(follow.String(), ": ")
		if _, err := fmt.Sscan(words, &first); err != nil || first < plain || plain <= int(begun.Counts.Sent) {
			t.Errorf("it begins with %d letters sent, where status has %d and the ledger %d: %v", first, plain, begun.Counts.Sent, err)
		}
		if code != cli.ExitDone {
			t.Errorf("it ends with exit code %d", code)
		}
		roottest.InOrder(t, follow.String(), "letters were sent; at 2 records a second\nsending\n", " stopped the run; waiting 20s for somebody to resume it\n", " resumed the run\n",
			"all is sent; watching", "STATE         done", "SUCCEEDED     120")
	})
}

// A run that was stopped and is not resumed has no end to wait for.
func TestFollowRun_EndsWhereNoOperatorResumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
		n.Fix("tax")
		ctx, stop := context.WithTimeoutCause(t.Context(), 5*time.Second, cli.ErrInterrupted)
		defer stop()
		n.Invoke(ctx, io.Discard, "run", "orders.dlq", "--yes", "--ramp", "0", "--rate", "1")
		begun := n.OnlyRun()
		began := time.Now()
		var follow bytes.Buffer
		code := n.Invoke(t.Context(), &follow, "status", "orders.dlq/"+begun.ID, "--follow")
		if took := time.Since(began); code != cli.ExitError || took < 20*time.Second || took > 30*time.Second {
			t.Errorf("it ends after %v with exit code %d", took, code)
		}
		roottest.InOrder(t, follow.String(), " stopped the run; waiting 20s for somebody to resume it\n", "STATE         stopped", "redrive resume orders.dlq/", " was stopped\n")
	})
}

// For some time the ledger takes no writes. The run's process lives, and no heartbeat shows it:
// status reported that it had none, and ended.
func TestFollowRun_GoesOnWhileNoHeartbeatCanCome(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"the process lives": false, "the process is gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 120})
				n.Fix("tax")
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				var all sync.WaitGroup
				all.Go(func() {
					n.Invoke(ctx, io.Discard, "run", "orders.dlq", "--yes", "--ramp", "0", "--rate", "2", "--window", "20s")
				})
				time.Sleep(20 * time.Second)
				begun := n.OnlyRun()
				var follow bytes.Buffer
				code := -1
				all.Go(func() {
					code = n.Invoke(t.Context(), &follow, "status", "orders.dlq/"+begun.ID, "--follow")
				})
				time.Sleep(3 * time.Second)
				refused := n.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.NotEnoughReplicas, Count: -1})
				if ends {
					stop(cli.ErrInterrupted)
				}
				time.Sleep(80 * time.Second)
				refused.Remove()
				all.Wait()
				roottest.InOrder(t, follow.String(), "no heartbeat of ada on ", " has come for 20s: its process is gone, or the ledger can't be written", "waiting until it is 2m")
				want := cli.ExitDone
				if ends {
					want = cli.ExitError
					roottest.InOrder(t, follow.String(), " has no process: ada on ", " was last heard from 2m")
				} else {
					roottest.InOrder(t, follow.String(), " is heard from again\n", "STATE         done", "SUCCEEDED     120")
				}
				if code != want {
					t.Errorf("it ends with exit code %d, want %d: %s", code, want, follow.String())
				}
			})
		})
	}
}

// Ctrl-C ends status and not the run, and a run that is over has no end to wait for.
func TestFollowRun_LeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		var left roottest.Result
		got := s.WhileSending(t, "20", func(run string) {
			ctx, stop := context.WithCancelCause(t.Context())
			i := s.As()
			i.Watch = func(words string) {
				if strings.Contains(words, "letters were sent; at 20 records a second") {
					stop(cli.ErrInterrupted)
				}
			}
			left = i.In(ctx, t, "status", run, "--follow")
		})
		o := roottest.OutcomeOf(t, got.Stdout)
		if left.Code != cli.ExitError || left.Stdout != "" || !strings.HasSuffix(left.Stderr, "the run goes on: redrive status "+o.Run+" --follow follows it again\nredrive: interrupted\n") {
			t.Errorf("it left with %+v", left)
		}
		if got.Code != cli.ExitDone || o.Succeeded != 60 {
			t.Errorf("run: %+v", got)
		}
		// It is over already.
		roottest.Prints(t, s.Redrive(t, "status", o.Run, "--follow"), cli.ExitDone, "STATE         done\n", "")
		roottest.Prints(t, s.Redrive(t, "status", "orders.dlq/none", "--follow"), cli.ExitError, "", "there is no such run")
		roottest.Prints(t, s.Redrive(t, "status", o.Run, "--no-wait"), cli.ExitUsage, "", "--no-wait is for status --follow")
	})
}
