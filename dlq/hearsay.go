package dlq

import (
	"encoding/base64"
	"encoding/json"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// hearsay is what consumers say of letters that a run brought back: that they discarded them, by the headers of a record. It is believed
// once the ledger knows that run, on this topic. Else a record of another cluster, or of a topic that was deleted since, or one that
// somebody made up, would take a letter off the open ones that it has nothing to do with.
type hearsay map[string]map[int32]*offsetset.Set // by run and partition

// isHearsay reports whether an entry is a consumer's: an engine knows the topic's id.
func (e *Entry) isHearsay() bool {
	return e.State == Discarded && e.Run != "" && e.TopicID == ([16]byte{})
}

// maxHearsay is of how many runs that are not known anything is kept; nobody has so many.
const maxHearsay = 1_000

func (h hearsay) add(run string, at place) {
	if h[run] == nil {
		if len(h) == maxHearsay {
			return
		}
		h[run] = map[int32]*offsetset.Set{}
	}
	if h[run][at.partition] == nil {
		h[run][at.partition] = &offsetset.Set{}
	}
	h[run][at.partition].Add(at.offset)
}

// drop forgets what was said of a letter.
func (h hearsay) drop(at place) {
	for _, said := range h {
		if s := said[at.partition]; s != nil {
			s.Remove(at.offset)
		}
	}
}

// knows reports whether a run is this topic's.
func (l *Ledger) knows(run string) bool {
	value, ok := l.runs[run]
	if !ok {
		return false
	}
	var r struct {
		TopicID string `json:"topicId"`
	}
	if json.Unmarshal(value, &r) != nil || r.TopicID == "" || l.id == ([16]byte{}) {
		return true // there is nothing that says otherwise
	}
	return r.TopicID == base64.RawURLEncoding.EncodeToString(l.id[:])
}

// believe takes down what consumers said of runs that are known by now.
func (l *Ledger) believe() {
	for run, said := range l.hearsay {
		if !l.knows(run) {
			continue
		}
		for partition, offsets := range said {
			for offset := range offsets.All() {
				l.fate(partition).set(offset, fateOf(Discarded))
			}
		}
		delete(l.hearsay, run)
	}
}
