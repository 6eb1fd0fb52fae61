package watch

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// Finder is the search of a rule for a letter that it selects, where only reading decides.
type Finder struct {
	*selection.Search
	of    string // the rule's filters, and the topic
	began time.Time
}

// MayFit counts the open letters that a rule may select, of those that a filter of the index does.
func MayFit(t *Topic, r *rule.Rule, f *dlq.Filter, now time.Time) int64 {
	if !r.Reads(t.DeadLetterTopic.Topic) {
		return t.Index.Select(f).Open
	}
	return Search(t, r, now).Left(t.Index, f)
}

// Search returns the search of a rule. It begins anew with another filter, for another topic of the
// name, and each wait of the rule if an expression may ask for the time.
func Search(t *Topic, r *rule.Rule, now time.Time) *Finder {
	of := fmt.Sprintf("%x %+v", t.Index.TopicID(), r.Filter)
	// of a letter that cannot be decoded now, the registry may know more later
	changes := func(where string) bool { return strings.Contains(where, "now") || t.view.Codec != nil && where != "" }
	asksTime := changes(r.Filter.Where)
	for b := range r.Earlier(t.DeadLetterTopic.Topic) {
		of += fmt.Sprintf(" %+v", b.Filter)
		asksTime = asksTime || changes(b.Filter.Where)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.searches[r.Name]
	if is == nil || is.of != of || asksTime && now.Sub(is.began) >= r.Wait {
		if t.searches == nil {
			t.searches = map[string]*Finder{}
		}
		is = &Finder{selection.NewSearch(r.Fits(t.DeadLetterTopic.Topic, t.view)), of, now}
		t.searches[r.Name] = is
	}
	return is
}
