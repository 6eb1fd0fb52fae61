package watch

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/gather"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/pulse"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// Topic is a dead-letter topic of the cluster.
type Topic struct {
	redrive.DeadLetterTopic
	Settings Settings
	Index    *letterindex.Index
	Runs
	observations
	Classes  Classes
	Arrivals Arrivals
	view     selection.View

	// What a server does about the topic, and what keeps it from doing that twice.

	Ruled    atomic.Bool // a rule is being applied
	Adopting atomic.Bool // a run of another server is being resumed
	// Holding reports that a note is being written that rules wait. HeldBy is why the last one was
	// not written, for the goroutine that set Holding.
	Holding atomic.Bool
	HeldBy  string
	// starting has one element while a request begins a run, or discards letters.
	starting chan struct{}
	// Singles are letters that are retried one by one, and Single is the last run of such.
	Singles gather.Queue[string, api.Run]
	Single  atomic.Pointer[api.Run]

	// Unledgered reports that the ledger did not exist when the brokers were last asked.
	Unledgered atomic.Bool

	mu    sync.Mutex
	read  position    // of the brokers' when the index was last refreshed
	asked time.Time   // when they were asked for it
	came  uint64      // records of the index, and
	moved time.Time   // when these grew under observation
	ours  time.Time   // since when this server owns the topic; zero if it does not
	ids   [2][16]byte // of the topic and its ledger
	brokerConfig
	rests    map[string]Rest // by rule
	searches map[string]*Finder

	recordAgain time.Time // when a note may be tried again after one that could not be written

	refreshing bool
	failed     error  // the last refresh
	logged     string // the trouble that was logged last
	retryIn    time.Duration
	retryAt    time.Time
}

// Rest is a time in which a rule does nothing on a topic, after an error.
type Rest struct {
	until  time.Time
	Wait   time.Duration
	Err    error
	Groups []string // to which letters cannot come home; those of others do not rest
	// Homeless is how many other letters cannot come home; the rest is over if there are more
	Homeless int64
}

func newTopic(is redrive.DeadLetterTopic, configured Settings, letters *letterindex.Index, view selection.View) *Topic {
	return &Topic{
		DeadLetterTopic: is, Settings: configured, Index: letters, Runs: Runs{index: letters}, Classes: Classes{index: letters}, Arrivals: Arrivals{index: letters}, view: view, starting: make(chan struct{}, 1),
	}
}

// position is how far a dead-letter topic and its ledger are: the sums of the partitions' offsets,
// and how many of these the brokers answered. A recreated topic may have the same ones, so it has
// the ids of the two topics.
type position struct {
	start, end, ledger int64
	answered           int
	ids                [2][16]byte
}

// refresh brings the index and the runs up to the brokers' position, unless they are there. asked
// is when the brokers were asked for it. Records of the ledger that this version cannot read are no
// error: all else is known, and reading again would not help. After an error about some partitions
// the index has the letters of the others. tuned are options of the read.
func (t *Topic) refresh(ctx context.Context, at position, asked time.Time, tuned ...kgo.Opt) error {
	t.mu.Lock()
	at.ids = t.ids
	before := t.read
	if p := t.Index.Progress(); at == before && IsWhole(p.Problem) && !p.Complete.IsZero() {
		t.asked = asked
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	missed := t.Index.Refresh(ctx, tuned...)
	if IsWhole(missed) {
		missed = nil
	} else if t.Index.Progress().Read.Before(asked) {
		return missed
	}
	t.keep(t.Index.Runs())
	if missed == nil {
		t.mu.Lock()
		t.read, t.asked = at, asked
		t.mu.Unlock()
	}
	return missed
}

// isSmall reports whether few records lie between what was read and the brokers' position.
func (t *Topic) isSmall(at position) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var read position
	if t.read.ids == t.ids && !t.Index.Progress().Complete.IsZero() {
		read = t.read
	}
	return at.end-max(at.start, read.end)+at.ledger-read.ledger <= smallRecords
}

// AsOf returns as of when the numbers of the topic are, of which the index has the progress; zero
// while it is read for the first time.
func (t *Topic) AsOf(p *letterindex.Progress) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Complete.IsZero() || p.Complete.After(t.asked) {
		return p.Complete
	}
	return t.asked
}

// follow registers whether records came since it was called last.
func (t *Topic) follow(now time.Time) {
	n := t.Index.Records()
	t.mu.Lock()
	defer t.mu.Unlock()
	if n != t.came {
		t.came, t.moved = n, now
	}
}

// SilentSince returns as of when the numbers of the topic are, if that is too long ago and nothing
// comes; zero otherwise.
func (t *Topic) SilentSince(p *pulse.Pulse) time.Time {
	progress := t.Index.Progress()
	at := t.AsOf(&progress)
	t.mu.Lock()
	moved := t.moved
	t.mu.Unlock()
	if at.IsZero() || at.Before(moved) && p.TooLong(moved).IsZero() {
		return time.Time{}
	}
	return p.TooLong(at)
}

// identify keeps the ids of the dead-letter topic and of its ledger, as they are now.
func (t *Topic) identify(topic, ledger [16]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids = [2][16]byte{topic, ledger}
}

// IsWhole reports whether a refresh of an index missed nothing, but for what a newer siding wrote.
func IsWhole(err error) bool { return err == nil || errors.Is(err, dlq.ErrNewerVersion) }

// Waits before a topic is read again that could not be read; each further one is twice as long.
const (
	leastRetry = 2 * time.Second
	mostRetry  = 2 * time.Minute
)

// NoLedger is the error of what needs the ledger while there is none.
func (t *Topic) NoLedger() error {
	return fmt.Errorf("%s %w: create the topic %s, compacted, with as many partitions as %s", t.DeadLetterTopic.Topic, failure.ErrNoLedger, t.Ledger, t.DeadLetterTopic.Topic)
}

// HasLedger returns [topic.noLedger] if the ledger did not exist when the brokers were last asked.
func (t *Topic) HasLedger() error {
	if t.Unledgered.Load() {
		return t.NoLedger()
	}
	return nil
}

// beginRefresh reports whether the topic may be read now, and reserves that until endRefresh.
func (t *Topic) beginRefresh(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refreshing || now.Before(t.retryAt) {
		return false
	}
	t.refreshing = true
	return true
}

// refreshFailed reports whether the last refresh failed.
func (t *Topic) refreshFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed != nil
}

func (t *Topic) endRefresh(err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refreshing, t.failed = false, err
	if err == nil {
		t.retryIn, t.retryAt = 0, time.Time{}
		return
	}
	t.retryIn = min(max(2*t.retryIn, leastRetry), mostRetry)
	t.retryAt = now.Add(t.retryIn)
}

// trouble returns why not all of the topic could be read, if that was not logged yet.
func (t *Topic) trouble() error {
	missed := t.Index.Progress().Problem
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmp.Or(t.failed, missed, t.Broken())
	if err == nil {
		t.logged = ""
		return nil
	}
	if err.Error() == t.logged {
		return nil
	}
	t.logged = err.Error()
	return err
}

// unreliable returns why it is unknown which letters came home: the ledger has what this version
// cannot read, or it forgets; nil if all is known. Without that no rule acts on the topic.
func (t *Topic) unreliable() error {
	missed := t.Index.Progress().Problem
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(missed, dlq.ErrNewerVersion) {
		return missed
	}
	return cmp.Or(t.Broken(), t.forgets)
}

// MayRecord reports whether a note to the ledger may be tried. After one that could not be written
// that takes a while.
func (t *Topic) MayRecord(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !now.Before(t.recordAgain)
}

// RestRecords keeps notes from being tried until a time.
func (t *Topic) RestRecords(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordAgain = until
}

// Alone lets one request at a time change the topic, until release is called.
func (t *Topic) Alone(ctx context.Context) (release func(), err error) {
	select {
	case t.starting <- struct{}{}:
		return func() { <-t.starting }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Duties reports whether this server may decide about the topic: it owns the topic, and has read
// what the owner before it noted. It notifies of incidents as soon as it has read some partitions:
// one that is silent must not hide the letters of the others. Only [Server.Run] calls it.
func (t *Topic) Duties(owned bool) (notifies, acts bool) {
	read := t.Index.Progress().Read
	t.mu.Lock()
	defer t.mu.Unlock()
	if !owned {
		t.ours = time.Time{}
		return false, false
	}
	if t.ours.IsZero() {
		t.ours = time.Now()
	}
	acts = t.asked.After(t.ours)
	return acts || read.After(t.ours), acts
}

// ReadSince reports whether all of the topic was read at some time after that one.
func (t *Topic) ReadSince(at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked.After(at) && !t.Index.Progress().Complete.IsZero()
}

// LedgerEnd returns the end of the ledger up to which the index was read.
func (t *Topic) LedgerEnd() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(t.read.ledger)
}

// TopicID returns the id of the dead-letter topic as text.
func (t *Topic) TopicID() string {
	id := t.Index.TopicID()
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// Reread reads what the ledger has now.
func (t *Topic) Reread(ctx context.Context) error {
	if err := t.Index.Refresh(ctx); err != nil {
		return err
	}
	t.keep(t.Index.Runs())
	return t.Broken()
}
