package tier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/internal/cases"
)

// Tiers of several lanes share a budget that has room for a few of their records. Records are
// parked, evicted, fetched again and lost to retention; fetches pause and fail; lanes are blocked
// and revoked. Each record runs once under each owner, never early, and in time unless something
// failed. The memory stays within the budget.
func TestTier_SharesABudgetWithOthers(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { shareBudget(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// written is how long records are written to the simulated tiers, and the longest that they wait.
const written = 5 * time.Minute

// simTopicID is the id of the simulated tiers' topic.
var simTopicID = [16]byte{1}

// simTier is a tier, its partition, and the loops that read it and run its records.
type simTier struct {
	*Tier
	lane *testLane
	mu   sync.Mutex // guards log
	log  log
	dues []int64 // of all that was ever written, in Unix milliseconds
	read int64   // up to where the log is read
	full bool    // its fetch is paused
	ran  map[int64]bool
	late time.Duration
	idle bool // no worker runs
}

func shareBudget(t *testing.T, rnd *rand.Rand) {
	const perTier = 10 // records that there has to be room for, so that they run in time
	largest := packedSize(packedLen(simRecord(0, time.Now(), time.Now(), 1000)))
	holds := 5 + rnd.IntN(40)
	fails, expires, revokes, blocked := rnd.IntN(4) == 0, rnd.IntN(4) == 0, rnd.IntN(4) == 0, rnd.IntN(3) == 0
	var expired atomic.Int64
	tiers := make([]*simTier, 1+rnd.IntN(4))
	env := testEnv()
	env.Budget = NewBudget(int64(holds)*largest, func([]Lane) {})
	env.MaxDue = []int{5, 1000}[rnd.IntN(2)]
	env.Expired = func(_ string, _ int32, n int64) { expired.Add(n) }
	env.Fetch = func(ctx context.Context, p Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		if p.ID != simTopicID {
			t.Errorf("a fetch names the topic %v", p.ID)
		}
		if fails && rand.IntN(5) == 0 {
			return nil, 0, errors.New("the broker is away")
		}
		s := tiers[p.Partition]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.log.fetch(ctx, p, from, bytes)
	}
	go env.Budget.Run(t.Context())
	for i := range tiers {
		tiers[i] = &simTier{log: log{}, ran: map[int64]bool{}}
		tiers[i].own(t, env, i)
	}
	tiers[0].idle = blocked

	began := time.Now()
	for time.Since(began) < 2*written+time.Minute {
		writes := time.Since(began) < written
		for i, s := range tiers {
			s.lane.Lock()
			if writes && rnd.IntN(20) == 0 {
				s.write(rnd)
			}
			if expires && writes && rnd.IntN(200) == 0 {
				s.mu.Lock()
				for at := range s.read / 2 {
					delete(s.log, at)
				}
				s.mu.Unlock()
			}
			s.poll()
			s.lane.Unlock()
			for n := rnd.IntN(20); n > 0 && !s.idle && s.lane.count() > 0; n-- {
				s.run(t)
			}
			if revokes && writes && !expires && rnd.IntN(200) == 0 {
				s.lane.Lock()
				s.lane.closing = true
				s.Drop()
				s.lane.ready = nil
				s.lane.Unlock()
				s.own(t, env, i)
			}
		}
		synctest.Wait()
		checkBudget(t, env.Budget, tiers, largest)
		time.Sleep(250 * time.Millisecond)
	}
	for i, s := range tiers {
		if !fails && !revokes && holds >= perTier*len(tiers) && s.late > 5*time.Second {
			t.Errorf("a record of tier %d of %d ran %v after it was due; the budget has room for %d", i, len(tiers), s.late, holds)
		}
	}

	tiers[0].idle = false // what has waited for it follows
	for range 3 * 60 * 4 {
		for _, s := range tiers {
			s.lane.Lock()
			s.poll()
			s.lane.Unlock()
			for s.lane.count() > 0 {
				s.run(t)
			}
		}
		synctest.Wait()
		time.Sleep(250 * time.Millisecond)
	}
	missing := int64(0)
	for i, s := range tiers {
		missing += int64(len(s.dues) - len(s.ran))
		if s.full || int(s.read) != len(s.dues) || s.Waiting() > 0 || s.inMemory > 0 || s.tracker.Pending > 0 {
			t.Errorf("tier %d is paused: %v, after %d of %d records; %d wait, %d are in memory, %d unfinished",
				i, s.full, s.read, len(s.dues), s.Waiting(), s.inMemory, s.tracker.Pending)
		}
	}
	if n := expired.Load(); missing != n {
		t.Errorf("%d records did not run, %d are reported as expired", missing, n)
	}
	b := env.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes != 0 || len(b.holders)+len(b.starved)+len(b.paused) > 0 {
		t.Errorf("%d bytes are counted at the end, %d tiers hold some, %d are starved, %d paused", b.bytes, len(b.holders), len(b.starved), len(b.paused))
	}
}

func simRecord(offset int64, at, due time.Time, size int) *kgo.Record {
	r := waitingFor(offset, at, due)
	r.Value = make([]byte, size)
	return r
}

// own gives the partition to another lane, which reads on from the committed floor.
func (s *simTier) own(t *testing.T, env *Env, partition int) {
	var floor int64
	if s.Tier != nil {
		floor = s.tracker.Floor()
	}
	s.Tier, s.lane = newTier(t, env)
	s.cfg.Partition = int32(partition)
	*s.tracker = offsets.New(floor, floor)
	s.read, s.full = floor, false
	for at := range s.ran {
		if at >= floor {
			delete(s.ran, at)
		}
	}
}

// write appends records to the log.
func (s *simTier) write(rnd *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := []time.Duration{10 * time.Second, written}[rnd.IntN(2)]
	for range rnd.IntN(40) {
		at, now := int64(len(s.dues)), time.Now()
		due := now.Add(time.Duration(rnd.Int64N(int64(longest))))
		s.log[at] = simRecord(at, now, due, rnd.IntN(1000))
		s.dues = append(s.dues, due.UnixMilli())
	}
}

// poll reads some records of the log, unless the fetch is paused.
func (s *simTier) poll() {
	if s.full = s.full && s.lane.reopened == 0; s.full {
		return
	}
	s.lane.reopened = 0
	s.mu.Lock()
	defer s.mu.Unlock()
	now, refused := time.Now(), false
	s.Read(simTopicID, s.read, now)
	for n := 20; n > 0 && int(s.read) < len(s.dues); n-- {
		s.tracker.Deliver(s.read)
		refused = s.Admit(s.log[s.read], now)
		s.read++
	}
	s.Promote()
	if s.full = refused; s.full {
		s.AwaitRoom()
	}
}

// run has a worker run the first ready record.
func (s *simTier) run(t *testing.T) {
	s.lane.work(s.Tier, func(r *kgo.Record) {
		late := time.Since(time.UnixMilli(s.dues[r.Offset]))
		if late < 0 || s.ran[r.Offset] {
			t.Errorf("offset %d runs %v after it is due, or again", r.Offset, late)
		}
		s.ran[r.Offset] = true
		s.late = max(s.late, late)
		s.lane.Lock()
		defer s.lane.Unlock()
		s.tracker.Finish(r.Offset)
	})
}

// checkBudget checks the books while nothing goes on.
func checkBudget(t *testing.T, b *Budget, tiers []*simTier, largest int64) {
	t.Helper()
	var bytes int64
	for i, s := range tiers {
		s.lane.Lock()
		var own int64
		for j := range s.parked {
			own += s.parked[j].size()
		}
		for _, it := range s.lane.ready {
			own += it.size
		}
		ready, waits, unfinished := len(s.lane.ready), s.Waiting(), s.tracker.Pending
		n, counted, countedBytes := len(s.parked)+ready, s.inMemory, s.inMemoryBytes
		s.lane.Unlock()
		if own != countedBytes || n != counted || waits+ready != unfinished {
			t.Fatalf("tier %d has %d records of %d bytes in memory, and counts %d of %d; %d wait of %d unfinished ones",
				i, n, own, counted, countedBytes, waits, unfinished)
		}
		if ready > min(s.env.MaxDue, maxReady) {
			t.Fatalf("%d records of tier %d are ready", ready, i)
		}
		bytes += own
	}
	// Each tier has room for its next record. Beyond that, two tiers may take the same room at the
	// same time, and evictions leave each tier its share of what is due soon.
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes != b.bytes || bytes > b.limit+b.limit/2+largest*int64(len(tiers)) {
		t.Fatalf("%d bytes are in memory, %d are counted; the budget is %d", bytes, b.bytes, b.limit)
	}
}
