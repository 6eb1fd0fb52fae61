package ledgerrecord

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// PruneKey begins the names of a [Prune]'s records, see [Run].
const PruneKey = "prune/"

// Prune is a ledger's record of letters that were deleted. dlq.Ledger.Prune writes it before it
// deletes, and again when it has deleted, or could not. Retention of the ledger deletes it.
type Prune struct {
	// ID is the record's name. IDs sort by time.
	ID string
	// TopicID is the id of the dead-letter topic; zero if the brokers have no ids.
	TopicID [16]byte
	// At is when it was announced.
	At time.Time
	// By is who deleted, Why the reason, and Archive where the letters were written before: each
	// may be empty.
	By, Why, Archive string
	// Until has, for each partition with letters to delete, the offset of the first that stays.
	Until map[int32]int64
	// Letters, Open and Discarded are those of dlq.Prunable.
	Letters, Open, Discarded int64
	// Deleted is when the letters were deleted. It is zero if that failed, or if the end was not
	// recorded: then the start of the partitions says what was deleted.
	Deleted time.Time
	// Error is why not all letters were deleted.
	Error string
}

const pruneVersion = 1

// pruneJSON is the JSON of a Prune, version 1.
type pruneJSON struct {
	V         int             `json:"v"`
	TopicID   string          `json:"topicId,omitempty"`
	At        time.Time       `json:"at"`
	By        string          `json:"by,omitempty"`
	Why       string          `json:"why,omitempty"`
	Archive   string          `json:"archive,omitempty"`
	Until     map[int32]int64 `json:"until"`
	Letters   int64           `json:"letters"`
	Open      int64           `json:"open,omitempty"`
	Discarded int64           `json:"discarded,omitempty"`
	Deleted   *time.Time      `json:"deleted,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// NewPruneID returns an ID that sorts by time.
func NewPruneID(at time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return at.UTC().Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random[:])
}

// Record returns the ledger's record. Its key is one of a run's other records, so every version of
// siding ignores it that does not know it.
func (p *Prune) Record(ledger string) (*kgo.Record, error) {
	j := pruneJSON{
		V: pruneVersion, At: p.At.UTC(), By: p.By, Why: p.Why, Archive: p.Archive, Until: p.Until,
		Letters: p.Letters, Open: p.Open, Discarded: p.Discarded, Error: p.Error,
	}
	if p.TopicID != ([16]byte{}) {
		j.TopicID = base64.RawURLEncoding.EncodeToString(p.TopicID[:])
	}
	if !p.Deleted.IsZero() {
		at := p.Deleted.UTC()
		j.Deleted = &at
	}
	value, err := json.Marshal(j)
	return Run(ledger, PruneKey+p.ID, value), err
}

// Prunes are the records of deleted letters that a ledger has, by id.
type Prunes map[string]Prune

// Add takes over a record with the key [RunKey]+name, if it is about a deletion or withdraws that.
// A later record of the same deletion says how it ended. The error is about one that cannot be
// read, which is left out.
func (all Prunes) Add(name string, value []byte) (changed bool, err error) {
	id, ok := strings.CutPrefix(name, PruneKey)
	if !ok {
		return false, nil
	}
	if value == nil {
		_, changed = all[id]
		delete(all, id)
		return changed, nil
	}
	p, err := parsePrune(id, value)
	if err == nil {
		all[id] = p
	}
	return err == nil, err
}

// Sorted returns them, the earliest first.
func (all Prunes) Sorted() []Prune {
	return slices.SortedFunc(maps.Values(all), func(a, b Prune) int { return strings.Compare(a.ID, b.ID) })
}

func parsePrune(id string, value []byte) (Prune, error) {
	var j pruneJSON
	switch err := json.Unmarshal(value, &j); {
	case j.V > pruneVersion:
		return Prune{}, fmt.Errorf("it has version %d, and this siding reads version %d", j.V, pruneVersion)
	case err != nil:
		return Prune{}, err
	case j.V < 1:
		return Prune{}, errors.New("it names no version")
	}
	p := Prune{
		ID: id, At: j.At, By: j.By, Why: j.Why, Archive: j.Archive, Until: j.Until,
		Letters: j.Letters, Open: j.Open, Discarded: j.Discarded, Error: j.Error,
	}
	if j.Deleted != nil {
		p.Deleted = *j.Deleted
	}
	if j.TopicID != "" {
		topic, err := base64.RawURLEncoding.Strict().DecodeString(j.TopicID)
		if err != nil || len(topic) != len(p.TopicID) {
			return Prune{}, fmt.Errorf("its topic id is %.40q", j.TopicID)
		}
		copy(p.TopicID[:], topic)
	}
	return p, nil
}
