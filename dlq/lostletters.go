package dlq

// Which letters brokers lost, as in an unclean election.

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lostTimeout bounds the questions of a lostLetters.drop. What has no answer is asked again at the
// next one.
const lostTimeout = 5 * time.Second

// lostLetters finds the letters of a topic that brokers lost, and whose offsets other letters may
// have. Only a new leader can have lost a letter, so it asks nothing as a rule.
type lostLetters struct {
	now     map[int32]int32 // by partition, how many leader epochs it had had at most
	checked map[int32]int32 // by partition, the epochs up to which nothing is to be asked
	cuts    map[int32]int64 // see Ledger.TakeCut
}

// found stores the leader epochs that brokers name. They may be stale, and lower than before.
func (l *lostLetters) found(partitions kadm.PartitionDetails) {
	for p, d := range partitions {
		if d.LeaderEpoch >= 0 {
			l.now[p] = max(l.now[p], d.LeaderEpoch+1)
		}
	}
}

// drop asks where the leader epochs of a topic end that entries name, and that ended since the last
// drop. It drops the states of lost letters, and reports whether there were any.
func (l *lostLetters) drop(ctx context.Context, cl *kgo.Client, topic string, states partitionStates) (dropped bool) {
	ctx, cancel := context.WithTimeout(ctx, lostTimeout)
	defer cancel()
	for todo := l.todo(states); len(todo) > 0; {
		ask, asked := kadm.OffsetForLeaderEpochRequest{}, map[int32]int32{}
		for p, all := range todo {
			last := len(all) - 1
			asked[p], todo[p] = all[last], all[:last]
			ask.Add(topic, p, asked[p]-1)
			if last == 0 {
				delete(todo, p)
			}
		}
		answers, err := kadm.NewClient(cl).OffsetForLeaderEpoch(ctx, ask)
		for p, a := range answers[topic] {
			if a.Err == nil && a.EndOffset >= 0 {
				dropped = l.ended(p, asked[p], a.EndOffset, states.of(p)) || dropped
			}
		}
		if err != nil {
			break
		}
	}
	return dropped
}

// todo returns, by partition, the numbers of leader epochs whose end is to be asked.
func (l *lostLetters) todo(states partitionStates) map[int32][]int32 {
	todo := map[int32][]int32{}
	for p, now := range l.now {
		epochs := states.of(p).epochs.open(now)
		was, ok := l.checked[p]
		if !ok {
			l.checked[p] = now
		} else if was < now && !slices.Contains(epochs, was) {
			epochs = append(epochs, was)
		}
		if len(epochs) > 0 {
			todo[p] = epochs
		}
	}
	return todo
}

// ended stores where so many leader epochs of a partition end, and drops the states of the letters
// that are lost by that.
func (l *lostLetters) ended(partition, epochs int32, end int64, f *stateSets) (dropped bool) {
	if l.checked[partition] == epochs {
		l.checked[partition] = l.now[partition]
		l.cut(partition, end)
	}
	if !f.epochs.end(epochs, end) {
		return false
	}
	for i := range f.sets {
		for _, offset := range f.epochs.lost(&f.sets[i]) {
			f.drop(offset)
			l.cut(partition, offset)
			dropped = true
		}
	}
	return dropped
}

func (l *lostLetters) cut(partition int32, offset int64) {
	if before, ok := l.cuts[partition]; !ok || offset < before {
		l.cuts[partition] = offset
	}
}

// takeCut returns the least offset of a partition since the last call.
func (l *lostLetters) takeCut(partition int32) int64 {
	offset, ok := l.cuts[partition]
	if delete(l.cuts, partition); !ok {
		return math.MaxInt64
	}
	return offset
}
