package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	// LeaderMoves is for how long a leader may move before its partition cannot be read. kgo asks
	// again by itself, but not where no broker leads, and its answer can be seconds older than its
	// last question. So what counts is when the call began.
	LeaderMoves = 5 * time.Second
	// leaderAgain is the time between two questions meanwhile.
	leaderAgain = 500 * time.Millisecond
)

// ListOffsets lists offsets of topics by a method of a kadm.Client, and again for [LeaderMoves]
// while a leader moves: until the brokers agree on the new one, each names another or none. Then it
// returns the last answer, with its errors.
func ListOffsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topics ...string) (kadm.ListedOffsets, error) {
	for until := time.Now().Add(LeaderMoves); ; {
		last := !time.Now().Before(until)
		listed, err := list(ctx, topics...)
		moves := isMove(err)
		listed.Each(func(o kadm.ListedOffset) { moves = moves || isMove(o.Err) })
		if !moves || last {
			return listed, err
		}
		select {
		case <-ctx.Done():
			return listed, err
		case <-time.After(leaderAgain):
		}
	}
}

// isMove reports whether a partition has no leader at present, or one that cannot answer yet. kadm
// has the error in the partition's answer if a broker gave it, and else in that of all brokers.
func isMove(err error) bool {
	return slices.ContainsFunc([]error{kerr.LeaderNotAvailable, kerr.NotLeaderForPartition, kerr.ReplicaNotAvailable, kerr.OffsetNotAvailable, kerr.KafkaStorageError},
		func(moves error) bool { return errors.Is(err, moves) })
}
