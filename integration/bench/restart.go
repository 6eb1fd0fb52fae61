package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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

// restartBench compares a process that starts after a kill -9 with one that starts after a clean
// end: after one kill, and after two in a row, when records run in groups.
func restartBench(ctx context.Context, r *rig) ([]arm, error) {
	d, err := r.fill(ctx, "src", shape{partitions: restartLanes, records: restartRecords, block: restartRecords / restartLanes})
	if err != nil {
		return nil, err
	}
	program := func(name string, killed ...int) arm {
		return arm{name, func(ctx context.Context, round int) (report, error) {
			j := job{Program: "siding-restart", Data: d, Group: r.group(name, round), Slots: restartSlots}
			if len(killed) == 0 {
				j.After = restartAfter
				if _, err := r.run(ctx, name, j); err != nil {
					return report{}, err
				}
			}
			for _, j.After = range killed {
				j.Kill = true
				if _, err := r.run(ctx, name, j); err == nil || !strings.Contains(err.Error(), "killed") {
					return report{}, fmt.Errorf("a process that was to be killed ended with: %w", err)
				}
			}
			j.After, j.Kill = 0, false
			rep, err := r.run(ctx, name, j)
			if err != nil {
				return report{}, err
			}
			if err := r.consumed(ctx, j.Group, d); err != nil {
				return report{}, err
			}
			left, err := r.admin.LeaveGroup(ctx, kadm.LeaveGroup(j.Group).InstanceIDs(restartMember))
			if err == nil {
				err = left.Error()
			}
			if err != nil {
				return report{}, fmt.Errorf("removing the member: %w", err)
			}
			return rep, nil
		}}
	}
	return []arm{program("clean"), program("killed", restartAfter), program("grouped", restartAfter, restartAgain)}, nil
}
