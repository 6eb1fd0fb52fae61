package redrive

// The record of a run in the ledger.

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/internal/offsetset"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// heartbeatEvery is the interval at which a run's process writes the run's record.
const heartbeatEvery = 5 * time.Second

// lively is the age up to which a heartbeat shows that a run has a process, if the timeout of its
// transactions was not raised: three heartbeats, and some delay.
const lively = 20 * time.Second

// runVersion is the version of the run's records in the ledger.
const runVersion = 1

// record is a run in the ledger, under the key run/<id>: its definition, its owner and its
// progress.
type record struct {
	V       int    `json:"v"`
	ID      string `json:"id"`
	TopicID string `json:"topicId,omitempty"`
	// by partition, for entries about its letters: see dlq.Entry.Epochs
	Epochs  map[int32]int32 `json:"epochs,omitempty"`
	State   State           `json:"state"`
	Waiting string          `json:"waiting,omitempty"`
	Cause   string          `json:"cause,omitempty"`
	By      string          `json:"by"`
	Why     string          `json:"why,omitempty"`
	Owner   string          `json:"owner"`
	// of the claim; a process with another token has lost the run
	Token     string    `json:"token"`
	Started   time.Time `json:"startedAt"`
	Heartbeat time.Time `json:"at"`
	// of the owner's transactions, if it was raised: the next heartbeat may come as late
	Timeout time.Duration `json:"timeout,omitzero"`
	// set by the process that stopped, in its last record
	Stopped time.Time `json:"stoppedAt,omitzero"`
	Ended   time.Time `json:"endedAt,omitzero"`
	Target  Target    `json:"target"`
	// the last times, the oldest first
	Resumed []Resumption `json:"resumed,omitempty"`
	// the retry topic of each group and partition ("group/3")
	Tiers map[string]string `json:"tiers,omitempty"`
	// bounds the deliveries of each copy; 0 for none
	MaxAttempts int        `json:"maxAttempts,omitempty"`
	Edit        editRecord `json:"edit,omitzero"`
	Pace        Pace       `json:"pace"`
	// when the owner began the ramp; zero before
	RampBegan time.Time `json:"rampBeganAt,omitzero"`
	// while the run watches
	WindowEnds time.Time `json:"windowEndsAt,omitzero"`
	Groups     []string  `json:"groups"`
	Classes    []string  `json:"classes"` // keys from classKey
	// hashes of many classes, in place of Classes
	ClassHashes []byte `json:"classHashes,omitempty"`
	// letters without a group, in a run whose entries do not distinguish them from others
	Groupless int64  `json:"groupless,omitempty"`
	Counts    Counts `json:"counts"`
	// number of the selection's pieces, under run/<id>/selection/<n>
	Pieces   int               `json:"pieces"`
	Watch    bounds.Positions  `json:"watch"`              // the start of the watch
	WatchIDs map[string]string `json:"watchIds,omitempty"` // topic ids of Watch, from idText
}

// editRecord is an edit in the ledger.
type editRecord struct{ Edit }

type editFields struct {
	Set   []setHeader `json:"set,omitempty"`
	Unset []string    `json:"unset,omitempty"`
	Patch []byte      `json:"patch,omitempty"`
	Value []byte      `json:"value,omitzero"` // an empty value is kept
}

type setHeader struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

func (e editRecord) MarshalJSON() ([]byte, error) {
	f := editFields{Unset: e.Unset, Patch: e.Patch, Value: e.newValue()}
	for _, h := range e.Set {
		f.Set = append(f.Set, setHeader(h))
	}
	return json.Marshal(f)
}

func (e *editRecord) UnmarshalJSON(text []byte) error {
	var f editFields
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	e.Edit = Edit{Unset: f.Unset, Patch: f.Patch, Value: f.Value}
	for _, h := range f.Set {
		e.Set = append(e.Set, kgo.RecordHeader(h))
	}
	return nil
}

// end puts the run into a final state. It removes the edit, which is not needed any more and may be
// personal data. Compaction removes the earlier records that have it. Nor are the classes needed:
// so a run whose record is too large can be aborted.
func (r *record) end(state State, cause string, at time.Time) {
	r.State, r.Cause, r.Ended, r.Edit, r.WindowEnds = state, cause, at, editRecord{}, time.Time{}
	r.Classes, r.ClassHashes = nil, nil
}

// A run's record is one record of the ledger, which is written at each heartbeat. Topics take a
// megabyte by default, and so do clients. The rest of it is for what comes later: the counts, the
// start of the watch.
const (
	maxRecord  = 800_000
	maxClasses = 64 << 10 // bytes of Classes, beyond which they are hashed
)

// setClasses stores the run's classes.
func (r *record) setClasses(classes []string) {
	r.Classes, r.ClassHashes = classes, nil
	n := 0
	for _, c := range classes {
		n += len(c)
	}
	if n <= maxClasses {
		return
	}
	r.Classes = nil
	for _, c := range classes {
		h := classHash(c)
		r.ClassHashes = append(r.ClassHashes, h[:]...)
	}
}

// classHash is the hash of a class in ClassHashes: 64 bits, so that another class hardly ever has
// the hash of one of the run's.
func classHash(class string) (h [8]byte) {
	sum := sha256.Sum256([]byte(class))
	copy(h[:], sum[:])
	return h
}

// hasClass returns a function that reports whether a class is one of the run's.
func (r *record) hasClass() func(class string) bool {
	names, hashes := map[string]bool{}, map[[8]byte]bool{}
	for _, c := range r.Classes {
		names[c] = true
	}
	for h := range slices.Chunk(r.ClassHashes, 8) {
		hashes[[8]byte(append(h, make([]byte, 8-len(h))...))] = true
	}
	return func(class string) bool { return names[class] || len(hashes) > 0 && hashes[classHash(class)] }
}

// toTier reports whether the letters go to retry topics.
func (r *record) toTier() bool { return len(r.Tiers) > 0 }

// pastCanary reports whether the canary had its outcome: the state shows it, or the run has sent
// more letters.
func (r *record) pastCanary() bool {
	c := r.Counts
	return r.State == Sending || r.State == Watching || c.Sent-c.Unknown > int64(r.Pace.Canary)
}

// targets returns the topics to which the letters go.
func (r *record) targets() []string {
	if !r.toTier() {
		return []string{r.Target.Topic}
	}
	return slices.Compact(slices.Sorted(maps.Values(r.Tiers)))
}

// unreadable wraps the error about a damaged run in the ledger, and gives the remedy.
func unreadable(ledger, id string, err error) error {
	if errors.Is(err, errNewerRun) {
		return fmt.Errorf("run %s in the ledger: %w", id, err)
	}
	return fmt.Errorf("run %s can't be read from the ledger: %w; to remove it, write a record with the key run/%s and no value to partition 0 of %s: "+
		"its letters keep their entries", id, err, id, ledger)
}

// recordsIn yields the runs of a ledger by id, and an error for each run that cannot be read.
func recordsIn(ledger *dlq.Ledger) iter.Seq2[*record, error] {
	return func(yield func(*record, error) bool) {
		runs := ledger.Runs()
		for _, id := range slices.Sorted(maps.Keys(runs)) {
			rec, err := parseRecord(runs[id])
			if err != nil {
				err = unreadable(ledger.Name(), id, err)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// What a run's record can say at most. A record that was damaged, or made up, must not let its
// reader write tombstones without end, or take a dead run for a live one for ever.
const (
	maxPieces  = 1 << 20 // of at least 32,768 letters, but for the last of each partition
	maxTimeout = 24 * time.Hour
)

// errNewerRun is wrapped by errors about runs of a newer version, which this version must not
// change.
var errNewerRun = errors.New("use a newer siding")

func parseRecord(value []byte) (*record, error) {
	var r record
	err := json.Unmarshal(value, &r)
	switch {
	case r.V > runVersion:
		return nil, fmt.Errorf("it has version %d, and this siding reads version %d: %w", r.V, runVersion, errNewerRun)
	case err != nil:
		return nil, err
	case r.V < 1 || r.ID == "" || r.State == "":
		return nil, errors.New("it has no version, id or state")
	case r.Pieces < 0 || r.Pieces > maxPieces:
		return nil, fmt.Errorf("its selection has %d pieces, and can have %d at most", r.Pieces, maxPieces)
	case r.Timeout < 0 || r.Timeout > maxTimeout:
		return nil, fmt.Errorf("its transactions have the timeout %v, and can have %v at most", r.Timeout, maxTimeout)
	}
	return &r, nil
}

// silentAfter is the age of the heartbeat from which the run seems to have no process. A heartbeat
// is part of a transaction, and waits for the one before it.
func (r *record) silentAfter() time.Duration { return lively + 2*r.Timeout }

// isFresh reports whether the age of the heartbeat shows that the run has a process. One that is
// ahead by more than that age comes from a wrong clock, and shows nothing.
func (r *record) isFresh(now time.Time) bool { return now.Sub(r.Heartbeat).Abs() <= r.silentAfter() }

// ledgerRecord returns the ledger's record of the run.
func (r *record) ledgerRecord(ledger string) *kgo.Record {
	value, err := json.Marshal(r)
	if err != nil {
		panic(err) // its fields always marshal
	}
	return ledgerrecord.Run(ledger, r.ID, value)
}

// last returns the records that end a run: its final state first, and then tombstones for its
// selection. They may need two transactions. A run without its selection could be neither resumed
// nor aborted, but a selection without a run is harmless.
func (r *record) last(ledger string) []*kgo.Record {
	records := []*kgo.Record{r.ledgerRecord(ledger)}
	for n := range r.Pieces {
		records = append(records, ledgerrecord.Run(ledger, pieceName(r.ID, n), nil))
	}
	return records
}

func (r *record) outcome(topic string) Outcome {
	return Outcome{
		Topic: topic, ID: r.ID, State: r.State, Waiting: r.Waiting, Cause: r.Cause, By: r.By, Why: r.Why,
		Owner: r.Owner, Heartbeat: r.Heartbeat, SilentAfter: r.silentAfter(), Claim: r.Token, Started: r.Started, Stopped: r.Stopped, Ended: r.Ended, Resumed: slices.Clone(r.Resumed),
		Pace: r.Pace, RampBegan: r.RampBegan, WindowEnds: r.WindowEnds, Counts: r.Counts.clone(),
	}
}

// pieceSize bounds a piece of a selection, so that every broker accepts its record.
const pieceSize = 512 << 10

// piece is a part of a selection.
type piece struct {
	V         int    `json:"v"`
	Partition int32  `json:"partition"`
	Offsets   []byte `json:"offsets"` // encoded by offsetset.Append
}

// piecesOf returns the records that keep a run's selection.
func piecesOf(s letters.Set, ledger, id string) (records []*kgo.Record) {
	for n, p := range piecesIn(s) {
		value, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		records = append(records, ledgerrecord.Run(ledger, pieceName(id, n), value))
	}
	return records
}

// piecesIn splits a selection, in the order of the partitions.
func piecesIn(s letters.Set) (pieces []piece) {
	put := func(partition int32, offsets []int64) {
		pieces = append(pieces, piece{V: runVersion, Partition: partition, Offsets: offsetset.Append(nil, slices.Values(offsets))})
	}
	for _, partition := range slices.Sorted(maps.Keys(s)) {
		var offsets []int64
		for o := range s[partition].All() {
			// An offset takes at most ten bytes before base64, and one byte among dense letters.
			if offsets = append(offsets, o); len(offsets) == pieceSize/16 {
				put(partition, offsets)
				offsets = offsets[:0]
			}
		}
		if len(offsets) > 0 {
			put(partition, offsets)
		}
	}
	return pieces
}

// selectionKey is between a run's id and the number of a piece of its selection.
const selectionKey = "/selection/"

func pieceName(id string, n int) string { return fmt.Sprint(id, selectionKey, n) }

// joinPieces joins the pieces of a selection, and returns an error if a piece is missing.
func joinPieces(id string, n int, pieces map[string][]byte) (letters.Set, error) {
	s := letters.Set{}
	for i := range n {
		value, ok := pieces[pieceName(id, i)]
		if !ok || value == nil {
			return nil, fmt.Errorf("piece %d of the %d of its selection is missing", i, n)
		}
		if err := parsePiece(s, value); err != nil {
			return nil, fmt.Errorf("piece %d of its selection: %w", i, err)
		}
	}
	return s, nil
}

// parsePiece adds the letters of a piece to a selection.
func parsePiece(s letters.Set, value []byte) error {
	var p piece
	if err := json.Unmarshal(value, &p); err != nil {
		return err
	}
	return p.addTo(s)
}

// addTo adds the letters of a piece to a selection.
func (p *piece) addTo(s letters.Set) error {
	if p.V != runVersion {
		return fmt.Errorf("it has version %d, and this siding reads version %d", p.V, runVersion)
	}
	if s[p.Partition] == nil {
		s[p.Partition] = &offsetset.Set{}
	}
	return s[p.Partition].Parse(p.Offsets)
}

// topicID returns the id of the run's dead-letter topic; zero if it is unknown.
func (r *record) topicID() [16]byte { return parseID(r.TopicID) }
