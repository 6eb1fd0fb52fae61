package dlq

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// PruneRecord is a ledger's record of letters that were deleted. [Ledger.Prune] writes it before it
// deletes, and again when it has deleted, or could not. Retention of the ledger deletes it.
type PruneRecord struct {
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
	// Letters, Open and Discarded are those of [Prunable].
	Letters, Open, Discarded int64
	// Deleted is when the letters were deleted. It is zero if that failed, or if the end was not
	// recorded: then the start of the partitions says what was deleted.
	Deleted time.Time
	// Error is why not all letters were deleted.
	Error string
}

const pruneVersion = 1

// pruneJSON is the JSON of a PruneRecord, version 1.
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

// newPruneID returns an ID that sorts by time.
func newPruneID(at time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return at.UTC().Format("20060102T150405.000Z") + "-" + hex.EncodeToString(random[:])
}

// record returns the ledger's record. Its key is one of a run's other records, so every version of
// siding ignores it that does not know it.
func (p *PruneRecord) record(ledger string) (*kgo.Record, error) {
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
	return RunRecord(ledger, pruneKey+p.ID, value), err
}

// ParsePruneRecord returns what a record of a ledger says of deleted letters; nil if it says
// nothing of that. The error is an [*EntryError].
func ParsePruneRecord(n *LedgerRecord) (*PruneRecord, error) {
	id, ok := strings.CutPrefix(n.Run, pruneKey)
	if !ok || n.Record.Value == nil {
		return nil, nil
	}
	var j pruneJSON
	err := json.Unmarshal(n.Record.Value, &j)
	switch {
	case j.V > pruneVersion:
		err = fmt.Errorf("it has version %d, and this siding reads version %d: %w", j.V, pruneVersion, ErrNewerVersion)
	case err == nil && j.V < 1:
		err = errors.New("it names no version")
	}
	p := &PruneRecord{
		ID: id, At: j.At, By: j.By, Why: j.Why, Archive: j.Archive, Until: j.Until,
		Letters: j.Letters, Open: j.Open, Discarded: j.Discarded, Error: j.Error,
	}
	if j.Deleted != nil {
		p.Deleted = *j.Deleted
	}
	if topic, bad := base64.RawURLEncoding.Strict().DecodeString(j.TopicID); err == nil && j.TopicID != "" {
		if bad != nil || len(topic) != len(p.TopicID) {
			err = fmt.Errorf("its topic id is %.40q", j.TopicID)
		}
		copy(p.TopicID[:], topic)
	}
	if err != nil {
		return nil, newEntryError(n.Record, fmt.Errorf("%w: %w", errPruneRecord, err))
	}
	return p, nil
}
