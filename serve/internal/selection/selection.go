package selection

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/where"
)

// Selection is a filter of the API, ready for use by one goroutine.
type Selection struct {
	// Filter has what an index can decide.
	Filter dlq.Filter
	// Reads decides the rest, of a letter that was read; nil if there is no rest.
	Reads func(*dlq.Letter) bool
	// Quotes allows errors of where to quote letters.
	Quotes bool
	where  *where.Expression // nil if there is none
}

// reads decides what takes a look at what a letter carries.
func (sel *Selection) reads(l *dlq.Letter, carries *dlq.Filter, view *View) bool {
	seen, _, _ := view.Letter(context.Background(), l)
	if view.Redact != nil {
		l = seen // what is hidden cannot be asked for
	}
	return carries.Selects(l) && (sel.where == nil || sel.where.Match(seen))
}

// Whole returns a filter that decides all.
func (sel *Selection) Whole() dlq.Filter {
	f := sel.Filter
	f.Match = sel.Reads
	return f
}

// Problem describes letters on which the expression failed: they count as not selected. It is empty
// if there are none.
func (sel *Selection) Problem() string {
	if sel.where == nil || sel.where.Failed == 0 {
		return ""
	}
	text := fmt.Sprintf("where failed on %s: not selected; the first is ", number.Of(int64(sel.where.Failed), "letter"))
	if sel.Quotes {
		return text + sel.where.First.Error()
	}
	return text + sel.where.FirstAt
}

// openState stands for all states of open letters.
const openState = "open"

// Mistakes are what is wrong with a filter.
type Mistakes []Mistake

// Mistake is what is wrong with a part of a filter. Key is the part's name in the API; it is empty
// if the problem has it.
type Mistake struct{ Key, Problem string }

func (all Mistakes) Error() string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = strings.TrimPrefix(m.Key+": "+m.Problem, ": ")
	}
	return strings.Join(texts, "; ")
}

// Compile makes a selection of a filter, for letters as a view has them. Its error is [Mistakes],
// with all of them.
func Compile(f *api.Filter, partitions int32, view View) (*Selection, error) {
	sel := &Selection{Quotes: view.Redact == nil, Filter: dlq.Filter{
		Classes: f.Class, Fingerprints: f.Fingerprint, Groups: f.Group, Since: f.Since, Until: f.Until, EnteredSince: f.EnteredSince, EnteredUntil: f.EnteredUntil,
	}}
	var wrong Mistakes
	complain := func(key, format string, args ...any) {
		wrong = append(wrong, Mistake{key, fmt.Sprintf(format, args...)})
	}
	for _, c := range f.Class {
		if !classify.ValidClass(c) {
			complain("class", "%q is not a class: letters, digits and _ . * / - only", c)
		}
	}
	for _, r := range f.Reason {
		sel.Filter.Reasons = append(sel.Filter.Reasons, headers.Reason(r))
	}
	sel.Filter.States = statesOf(f.State, complain)
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		complain("until", "it is not after the beginning")
	}
	if !f.EnteredSince.IsZero() && !f.EnteredUntil.IsZero() && !f.EnteredSince.Before(f.EnteredUntil) {
		complain("enteredUntil", "it is not after the beginning")
	}
	var err error
	var named []string
	for _, p := range f.Partition {
		named = append(named, fmt.Sprint(p))
	}
	if sel.Filter.Ranges, err = where.ParseRanges("", named, f.Offset); err != nil {
		complain("", "%v", err)
	}
	for _, r := range sel.Filter.Ranges {
		if r.Partition >= partitions {
			complain("partition", "there is no partition %d: the topic has %d, from 0 on", r.Partition, partitions)
		}
	}
	attempts := where.Span{To: math.MaxInt64}
	if f.Attempts != "" {
		if attempts, err = where.ParseSpan(f.Attempts); err != nil {
			complain("attempts", "%v", err)
		}
	}
	if f.Where != "" {
		if sel.where, err = where.Compile(f.Where); err != nil {
			complain("where", "%v", err)
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if ReadsLetters(f) {
		carries := dlq.Filter{Keys: f.Key, Headers: where.ParseHeaders(f.Header)}
		sel.Reads = func(l *dlq.Letter) bool {
			return attempts.Has(int64(l.Meta.Attempts)) && sel.reads(l, &carries, &view)
		}
	}
	return sel, nil
}

// statesOf returns the states that words stand for.
func statesOf(words []string, complain func(key, format string, args ...any)) (all []dlq.State) {
	for _, word := range words {
		switch {
		case word == openState:
			all = append(all, "", dlq.Unknown, dlq.Reopened)
		case slices.Contains(states, dlq.State(word)):
			all = append(all, dlq.State(word))
		default:
			complain("state", "%q is not a state: choose %s, %s", word, openState, strings.Join(stateNames(), ", "))
		}
	}
	return all
}

// ReadsLetters reports whether a filter takes reading the letters: the index does not know what
// they carry, nor their attempts.
func ReadsLetters(f *api.Filter) bool {
	return f.Attempts != "" || f.Where != "" || len(f.Key)+len(f.Header) > 0
}

// states are the states that a filter can name.
var states = []dlq.State{
	dlq.Redriven, dlq.Succeeded, dlq.Failed, dlq.Discarded, dlq.Compensated, dlq.Expired, dlq.Duplicate, dlq.Unknown, dlq.Unfollowed, dlq.Reopened,
}

func stateNames() (all []string) {
	for _, s := range states {
		all = append(all, string(s))
	}
	return all
}
