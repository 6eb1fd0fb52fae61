package dlq

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// State is what became of a dead letter.
type State string

// The states that a ledger knows. A letter without an entry, or with one that says unknown, is open.
const (
	Redriven  State = "redriven"  // on its target; the outcome is not known yet
	Succeeded State = "succeeded" // brought back, and processed
	Failed    State = "failed"    // brought back, and failed again: it is a new letter
	Discarded State = "discarded" // given up, by the handler or by hand
	Expired   State = "expired"   // taken by retention before anything became of it
	Duplicate State = "duplicate" // the same as a letter before it
	Unknown   State = "unknown"   // brought back, but what became of it cannot be told
)

// Settles reports whether a letter of that state is not open any more.
func (s State) Settles() bool { return s != "" && s != Unknown }

// known reports whether a state is one of those above. A later version may know more.
func (s State) known() bool {
	switch s {
	case Redriven, Succeeded, Failed, Discarded, Expired, Duplicate, Unknown:
		return true
	}
	return false
}

// Entry is what a ledger says about a dead letter. The last one about a letter counts.
type Entry struct {
	// TopicID is the id of the dead-letter topic. An entry about a topic of the same name, deleted since, means nothing. It is zero
	// where brokers have no ids, or the writer did not know it; such an entry is believed.
	TopicID [16]byte
	State   State
	// Run is the redrive run that it is about, if one is.
	Run string
	At  time.Time
	// By and Why are the words of the person who decided it.
	By, Why string
	// Target is where the letter was brought back to.
	Target headers.Position
	// Class is that of the error with which it failed again.
	Class string
	// Edited names what was changed on the way back, "headers", "value" or both.
	Edited []string
}

// entryJSON is an entry as it stands in a ledger, version 1.
type entryJSON struct {
	V       int      `json:"v"`
	TopicID string   `json:"topicId,omitempty"`
	State   State    `json:"state"`
	Run     string   `json:"run,omitempty"`
	At      string   `json:"at"`
	By      string   `json:"by,omitempty"`
	Why     string   `json:"why,omitempty"`
	Target  string   `json:"target,omitempty"`
	Class   string   `json:"class,omitempty"`
	Edited  []string `json:"edited,omitempty"`
}

const entryVersion = 1

// Record returns the record that says so of the letter at a place: key is its offset in decimal, the partition is the letter's.
func (e *Entry) Record(ledger string, partition int32, offset int64) *kgo.Record {
	j := entryJSON{V: entryVersion, State: e.State, Run: e.Run, At: e.At.UTC().Format(time.RFC3339Nano), By: e.By, Why: e.Why, Class: e.Class, Edited: e.Edited}
	if e.TopicID != ([16]byte{}) {
		j.TopicID = base64.RawURLEncoding.EncodeToString(e.TopicID[:])
	}
	if e.Target.Topic != "" {
		j.Target = e.Target.String()
	}
	value, err := json.Marshal(&j)
	if err != nil {
		panic(err) // there are only strings and numbers in it
	}
	return &kgo.Record{Topic: ledger, Partition: partition, Key: strconv.AppendInt(nil, offset, 10), Value: value}
}

// EntryError is about a record of a ledger that is no entry.
type EntryError struct {
	At  headers.Position // where it stands
	Err error
}

func (e *EntryError) Error() string { return fmt.Sprintf("dlq: ledger record %v: %v", e.At, e.Err) }
func (e *EntryError) Unwrap() error { return e.Err }

// ParseEntry reads an entry, and the offset of the letter that it is about. The error is an *EntryError.
func ParseEntry(r *kgo.Record) (offset int64, e Entry, err error) {
	fail := func(err error) (int64, Entry, error) {
		return 0, Entry{}, &EntryError{headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}, err}
	}
	offset, err = strconv.ParseInt(string(r.Key), 10, 64)
	if err != nil || offset < 0 || strconv.FormatInt(offset, 10) != string(r.Key) {
		return fail(fmt.Errorf("its key %.40q is no offset", r.Key))
	}
	if r.Value == nil {
		return offset, Entry{}, nil // taken back
	}
	var j entryJSON
	if err := json.Unmarshal(r.Value, &j); err != nil {
		return fail(err)
	}
	switch {
	case j.V > entryVersion:
		return fail(fmt.Errorf("it is of version %d, and this one knows %d: take a newer siding", j.V, entryVersion))
	case j.V < 1:
		return fail(errors.New("it names no version"))
	case !j.State.known():
		return fail(fmt.Errorf("its state is %.40q", j.State))
	}
	e = Entry{State: j.State, Run: j.Run, By: j.By, Why: j.Why, Class: j.Class, Edited: j.Edited}
	if j.TopicID != "" {
		id, err := base64.RawURLEncoding.DecodeString(j.TopicID)
		if err != nil || len(id) != len(e.TopicID) {
			return fail(fmt.Errorf("its topic id is %.40q", j.TopicID))
		}
		copy(e.TopicID[:], id)
	}
	if e.At, err = time.Parse(time.RFC3339Nano, j.At); err != nil {
		return fail(fmt.Errorf("its time is %.40q", j.At))
	}
	if j.Target != "" {
		if e.Target, err = headers.ParsePosition(j.Target); err != nil {
			return fail(fmt.Errorf("its target %.80q: %w", j.Target, err))
		}
	}
	return offset, e, nil
}
