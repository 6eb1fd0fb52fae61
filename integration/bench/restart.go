package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The bench of restarts: lanes whose windows are full when their process ends. What is left of the
// topic then is what a window holds.
const (
	restartLanes   = 100
	restartRecords = 100_000
	restartAfter   = 62_000 // records that the first process handles
	restartAgain   = 2_000  // records that the second one handles before it is killed, too
	restartSlots   = 64
	restartNap     = 5 * time.Millisecond // of a handler
	// A member takes the place of the one that was killed, for which the group would otherwise
	// wait.
	restartMember = "bench"
)

// restartJob handles what is left of the topic.
var restartJob = job{Program: "siding-restart", Slots: restartSlots}

// ended measures a process that starts after a clean end.
func ended(t *turn) report {
	t.job.After = restartAfter
	unchecked(t)
	return restarted(t)
}

// killed measures a process that starts after a kill -9, or after two in a row, when records run in
// groups.
func killed(after ...int) func(*turn) report {
	return func(t *turn) report {
		t.job.Kill = true
		for _, t.job.After = range after {
			t.do(func() error {
				if _, err := t.run(t.ctx, t.arm.name, t.arm.exe, t.job); err == nil || !strings.Contains(err.Error(), "killed") {
					return fmt.Errorf("a process that was to be killed ended with: %w", err)
				}
				return nil
			})
		}
		return restarted(t)
	}
}

// restarted runs the last process of a turn, and removes its member.
func restarted(t *turn) report {
	t.job.After, t.job.Kill = 0, false
	rep := consumeAll(t)
	t.do(func() error {
		left, err := t.admin.LeaveGroup(t.ctx, kadm.LeaveGroup(t.job.Group).InstanceIDs(restartMember))
		if err = errors.Join(err, left.Error()); err != nil {
			return fmt.Errorf("removing the member: %w", err)
		}
		return nil
	})
	return rep
}

// sidingRestart handles the topic to its end, and measures the time from its start until then. With
// After it ends once it has handled so many records: it is killed if the job says so.
func sidingRestart(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
	p := newProgress(j.Data, func() {})
	enough := make(chan struct{})
	var handled atomic.Int64
	cfg := sidingConfig(j)
	cfg.Naming, cfg.Concurrency = groupNaming, j.Slots
	cfg.Kafka = append(cfg.Kafka, kgo.InstanceID(restartMember))
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		time.Sleep(restartNap)
		p.observe(r)
		if handled.Add(1) == int64(j.After) {
			if j.Kill {
				return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			}
			close(enough)
		}
		return nil
	}
	end := p.done
	if j.After > 0 {
		end = enough
	}
	return consume(ctx, cfg, end, func() report { return m.end(handled.Load()) })
}
