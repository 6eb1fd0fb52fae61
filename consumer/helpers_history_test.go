package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// hangsFor is how long the longest handlers ignore their timeouts.
const hangsFor = 15 * time.Minute

// history is a random one.
type history struct {
	t    *testing.T
	k    *consumertest.Kafka
	rnd  *rand.Rand
	kind int
	cfg  consumer.Config
	dial func(context.Context, string, string) (net.Conn, error)

	decoder, pauses, slowCommits, refusals, accidents, joins bool
	members                                                  int
	partitions                                               map[string]int
	slow                                                     atomic.Int64 // a commit, in ns
	commits                                                  atomic.Int64

	mu      sync.Mutex
	began   time.Time
	all     []*script
	plan    map[string][]*script // by topic and partition
	calls   int
	slowly  int       // calls that took long
	quiet   time.Time // since when nothing has happened that makes lanes wait
	lines   []string
	failed  bool
	letters int64
	longest float64 // wait of a steady record, as a share of what is explained

	// Only the loop that plays it uses these.
	live      map[int]*mortalProcess // by member
	again     map[int]time.Time      // when a member begins again
	next      map[string]time.Time   // what happens when
	processes []*mortalProcess
	deaths    int
	progress  time.Time          // when a process died, or a record was settled
	fault     *kfake.FaultHandle // commits are refused
	paused    string             // a topic
}

func newHistory(t *testing.T, k *consumertest.Kafka, seed uint64) *history {
	rnd := rand.New(rand.NewPCG(seed, 7))
	h := &history{
		t: t, k: k, rnd: rnd, kind: int(seed % 4), partitions: map[string]int{}, plan: map[string][]*script{}, members: 1, began: time.Now(),
		live: map[int]*mortalProcess{}, again: map[int]time.Time{}, next: map[string]time.Time{},
		dial: client(t, k).OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error)),
	}
	pick := func(share float64) bool { return rnd.Float64() < share }
	among := func(ds ...time.Duration) time.Duration { return ds[rnd.IntN(len(ds))] }
	cfg := config(nil)
	cfg.Logger = slog.New(slog.DiscardHandler)
	if os.Getenv("SIDING_SEED") != "" && os.Getenv("SIDING_QUIET") == "" {
		cfg.Logger = nil
	}
	cfg.Topics = []string{"steady"}
	h.partitions["steady"] = 1 + rnd.IntN(2)
	for i := range 1 + rnd.IntN(3) {
		topic := []string{"orders", "others", "third"}[i]
		cfg.Topics = append(cfg.Topics, topic)
		h.partitions[topic] = 1 + rnd.IntN(6)
	}
	for topic, n := range h.partitions {
		k.CreateTopic(topic, int32(n))
	}
	cfg.Order = consumer.Order(rnd.IntN(3))
	names := []string{"cooperative", "eager", "KIP-848"}
	balancer := names[rnd.IntN(3)]
	cfg.Kafka = balancers[balancer]
	cfg.Policy = consumer.Policy{
		HandlerTimeout: among(0, 2*time.Second, 5*time.Second, 10*time.Second, 30*time.Second, 90*time.Second),
		CrashLimit:     2 + rnd.IntN(3),
		Immediate:      consumer.Immediate{Attempts: rnd.IntN(3)},
		Tiers:          [][]time.Duration{{time.Second}, {5 * time.Second}, {2 * time.Second, 30 * time.Second}, {time.Minute}}[rnd.IntN(4)],
		MaxAttempts:    100,
		Breaker:        consumer.Breaker{Off: pick(0.7)},
		RetryBudget:    consumer.RetryBudget{Off: pick(0.5)},
	}
	cfg.Concurrency = []int{0, 0, 1, 3}[rnd.IntN(4)]
	cfg.MaxInFlight = []int{0, 0, 10, 100}[rnd.IntN(4)]
	cfg.CommitInterval = among(20*time.Millisecond, 100*time.Millisecond, time.Second, 5*time.Second)
	cfg.DrainTimeout = among(time.Second, 5*time.Second, 20*time.Second)
	h.cfg = cfg
	h.decoder, h.pauses = pick(0.3), pick(0.3)
	h.slowCommits, h.refusals = pick(0.4), h.kind > 0 && pick(0.4)
	if h.accidents = h.kind >= 2; h.kind == 3 {
		h.members, h.joins = 1+rnd.IntN(3), pick(0.7)
	}
	h.logf("seed %d, kind %d, partitions %v, order %d, %s, policy %+v, concurrency %d, in flight %d, commits %v, drain %v, decoder %v, pauses %v, slow %v, refusals %v, members %d, joins %v",
		seed, h.kind, h.partitions, cfg.Order, balancer, cfg.Policy, cfg.Concurrency, cfg.MaxInFlight, cfg.CommitInterval, cfg.DrainTimeout, h.decoder, h.pauses, h.slowCommits, h.refusals, h.members, h.joins)
	k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		h.commits.Add(1)
		if d := h.slow.Load(); d > 0 {
			k.Cluster.SleepControl(func() { time.Sleep(time.Duration(d)) })
		}
		return nil, nil, false
	})
	return h
}

func (h *history) timeout() time.Duration {
	if h.cfg.Policy.HandlerTimeout == 0 {
		return time.Minute
	}
	return h.cfg.Policy.HandlerTimeout
}

// logf keeps what happened, for the message of a failure.
func (h *history) logf(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf("%9.3f ", time.Since(h.began).Seconds())+fmt.Sprintf(format, args...))
}

func (h *history) errorf(format string, args ...any) {
	if h.failed { // only the first one counts
		return
	}
	h.failed = true
	h.logf("VIOLATION: "+format, args...)
	h.t.Errorf(format, args...)
}

// write produces records with random scripts.
func (h *history) write(topic string, n int, bad bool) {
	h.mu.Lock()
	var records []*kgo.Record
	for range n {
		s := &script{id: len(h.all), slowly: -1, deaths: map[string]int{}, topic: topic, partition: int32(h.rnd.IntN(h.partitions[topic])), produced: time.Now()}
		s.key = fmt.Sprint(h.rnd.IntN(5))
		x := h.rnd.IntN(1000)
		switch {
		case topic == "steady" || !bad:
		case x < 80:
			s.fate, s.times = failsOften, 1+h.rnd.IntN(3)
		case x < 100:
			s.fate = failsForGood
		case x < 130 && h.kind > 0:
			s.fate, s.takes = takesLong, time.Duration((0.1+0.8*h.rnd.Float64())*float64(h.timeout()))
		case x < 160 && h.kind > 0:
			s.fate, s.takes = hangs+fate(h.rnd.IntN(3)), h.timeout()+2*time.Second+time.Duration(h.rnd.IntN(60))*time.Second/2
			if s.takes > h.timeout()+20*time.Second && h.cfg.Concurrency == 0 && s.fate != hangsAndFails {
				s.takes = h.timeout() + hangsFor
			}
		case x < 170 || x < 200 && h.kind == 0:
			if s.fate = kills + fate(h.rnd.IntN(4)); s.fate == killsDecoder && !h.decoder || s.fate == killsInPlace && h.cfg.Policy.Immediate.Attempts == 0 {
				s.fate = kills
			}
		default:
			s.takes = time.Duration(h.rnd.IntN(4)) * time.Duration(h.rnd.IntN(30)) * time.Millisecond
		}
		h.all = append(h.all, s)
		at := fmt.Sprint(topic, s.partition)
		h.plan[at] = append(h.plan[at], s)
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(s.key), Value: strconv.AppendInt(nil, int64(s.id), 10)})
	}
	h.mu.Unlock()
	for _, r := range records {
		id, _ := strconv.Atoi(string(r.Value))
		r.Partition = h.all[id].partition
		if r.Partition == 0 { // the kit would choose by the key
			r.Key = keyAmong(0, h.partitions[topic])
			h.all[id].key = string(r.Key)
		}
	}
	h.k.Produce(records...)
}

// commitsNow returns the evidence on a topic and its tiers.
func (h *history) commitsNow(topic string) string {
	var all []string
	g := h.k.Cluster.GroupInfo("billing")
	if g == nil {
		return ""
	}
	for name, of := range g.Commits {
		if name == topic || strings.HasPrefix(name, topic+".retry") {
			for p, c := range of {
				all = append(all, fmt.Sprintf("%s/%d %d %s", name, p, c.Offset, strings.TrimPrefix(c.Metadata, "siding 1 ")))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// look reads the dead letters that are new, and reports how many records are not settled.
func (h *history) look() (left int) {
	var n int64
	for topic := range h.partitions {
		for p := range h.partitions[topic] {
			if info := h.k.Cluster.PartitionInfo(topic+".dlq", int32(p)); info != nil {
				n += info.HighWatermark
			}
		}
	}
	h.mu.Lock()
	known := h.letters
	h.mu.Unlock()
	if n > known {
		found := map[int][]headers.Reason{}
		var count int64
		for topic := range h.partitions {
			if h.k.Cluster.PartitionInfo(topic+".dlq", 0) == nil {
				continue
			}
			for _, r := range content(h.t, h.k, topic+".dlq") {
				meta, err := headers.Parse(r.Headers)
				if err != nil {
					h.t.Fatal(err)
				}
				id, _ := strconv.Atoi(string(r.Value))
				found[id] = append(found[id], meta.Reason)
				count++
			}
		}
		h.mu.Lock()
		h.letters = count
		for id, reasons := range found {
			s := h.all[id]
			if len(s.letters) < len(reasons) {
				h.logf("dead-lettered %v: %q", s, reasons)
			}
			s.letters = reasons
		}
		h.mu.Unlock()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.all {
		if !s.settled() {
			left++
		}
	}
	return left
}

// heldFor returns for how long a slow call may hold up others.
func (h *history) heldFor() time.Duration {
	if h.cfg.Concurrency > 0 { // a late handler keeps its worker
		return h.timeout() + 80*time.Second
	}
	return h.timeout() + 30*time.Second
}

// waits checks that no steady record waits for longer than the handlers beside it explain.
func (h *history) waits() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.all {
		if s.topic != "steady" || s.handled > 0 {
			continue
		}
		if s.slowly < 0 || time.Since(h.quiet) < 3*time.Minute {
			s.slowly = h.slowly
		}
		since := s.produced
		if quiet := h.quiet.Add(3 * time.Minute); quiet.After(since) {
			since = quiet
		}
		// each slow one may run alone, until it ignores its timeout, and be waited for before
		most := 2*(h.timeout()+80*time.Second) + time.Duration(h.slowly-s.slowly)*h.heldFor()
		waited := time.Since(since)
		if h.longest = max(h.longest, float64(waited)/float64(most)); waited > most {
			h.errorf("%v has waited for %v, of which %v are explained; %s; %s", s, waited, most, h.commitsNow("orders"), h.commitsNow("steady"))
			s.handled++ // once
		}
	}
}

func (h *history) play() {
	defer func() {
		if h.failed || h.t.Failed() {
			h.t.Logf("%s\n%s", h.lines[0], strings.Join(h.lines[max(1, len(h.lines)-300):], "\n"))
		}
	}()
	for m := range h.members {
		h.again[m] = time.Now()
	}
	length := time.Duration(3+h.rnd.IntN(10)) * time.Minute
	if h.kind == 0 {
		length = time.Minute
	}
	if cases.Few {
		length /= 2
	}
	for _, topic := range h.cfg.Topics {
		h.write(topic, 5+h.rnd.IntN(100), true)
	}
	h.progress = time.Now()
	for i, best := 0, 1<<30; ; i++ {
		more := time.Since(h.began) < length
		h.restart()
		h.troubles(more)
		if i%20 == 0 {
			h.waits()
		}
		if i%50 == 0 || !more && i%10 == 0 {
			left := h.look()
			if more || left < best {
				best, h.progress = left, time.Now()
			}
			if h.failed || !more && left == 0 && h.fault == nil && h.paused == "" && h.slow.Load() == 0 {
				break
			}
			if time.Since(h.progress) > time.Hour || h.deaths > 300 {
				h.stalled(left)
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.end()
	h.check()
}

// stalled reports records that do not settle.
func (h *history) stalled(left int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.all {
		if !s.settled() {
			h.errorf("not settled: %v", s)
		}
	}
	h.logf("%d records are left, after %d deaths", left, h.deaths)
	for _, topic := range h.cfg.Topics {
		h.logf("%s", h.commitsNow(topic))
	}
}

// end ends all processes, and waits for handlers that hang.
func (h *history) end() {
	h.mu.Lock()
	if g := h.k.Cluster.GroupInfo("billing"); h.failed && g != nil {
		h.logf("group: %s, epoch %d", g.State, g.Epoch)
		for _, m := range g.Members {
			h.logf("  member %s: %v", m.MemberID, m.Assignment)
		}
		for _, p := range h.live {
			h.logf("process %d: dead %v, cut %v, %+v", p.n, p.dead.Load(), p.cut.Load(), p.c.Health())
		}
	}
	h.mu.Unlock()
	h.slow.Store(0)
	if h.fault != nil {
		h.fault.Remove()
	}
	for _, p := range h.live {
		if !p.dead.Load() {
			go p.stop()
		}
	}
	for _, p := range h.processes {
		<-p.stopped
	}
	time.Sleep(h.timeout() + hangsFor + time.Minute)
	h.look()
}

// check checks what has to hold at the end.
func (h *history) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.all {
		if len(s.letters) > 0 && !s.fate.kills() && !s.fate.hangs() && s.fate != failsForGood && !s.excused {
			h.errorf("a dead letter: %v", s)
		}
		if s.fate.kills() && slices.ContainsFunc(s.letters, func(r headers.Reason) bool { return r != headers.ReasonCrashLoop }) {
			h.errorf("another reason: %v", s)
		}
		for at, n := range s.deaths {
			if most := h.cfg.Policy.CrashLimit + 1; h.kind == 0 && n > most {
				h.errorf("%d deaths at %s, want %d at most: %v", n, at, most, s)
			}
		}
	}
	if h.kind == 0 {
		for at, plan := range h.plan {
			found, n := 0, 0 // within the first window of a partition
			for _, s := range plan[:min(len(plan), 60)] {
				if s.fate.kills() && s.fate != killsLater {
					found++
					for _, d := range s.deaths {
						n += d
					}
				}
			}
			if most := h.cfg.Policy.CrashLimit + 1 + 2*(found-1); found > 0 && n > most {
				h.errorf("%d deaths by %d records of %s, want %d at most", n, found, at, most)
			}
		}
	}
	took := time.Since(h.began)
	most := int64(took/h.cfg.CommitInterval)*int64(h.members+1) + int64(20*h.calls) + 2000
	if n := h.commits.Load(); n > most {
		h.errorf("%d commits in %v with %d calls, want %d at most", n, took, h.calls, most)
	}
	h.t.Logf("%d records, %d calls, %d deaths, %d commits, %v, waits %.2f", len(h.all), h.calls, h.deaths, h.commits.Load(), took, h.longest)
}
