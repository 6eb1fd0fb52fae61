package serve

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
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/where"
)

// selection is a filter of the API, ready for use by one goroutine.
type selection struct {
	// filter has what a book can decide.
	filter dlq.Filter
	// reads decides the rest, of a letter that was read; nil if there is no rest.
	reads func(*dlq.Letter) bool
	where *where.Expression // nil if there is none
	quote bool              // errors of where may quote letters
}

// whole returns a filter that decides all.
func (sel *selection) whole() dlq.Filter {
	f := sel.filter
	f.Match = sel.reads
	return f
}

// problem tells of letters on which the expression failed: they count as not selected. It is empty
// if there are none.
func (sel *selection) problem() string {
	if sel.where == nil || sel.where.Failed == 0 {
		return ""
	}
	text := fmt.Sprintf("where failed on %s: not selected; the first is ", letters(int64(sel.where.Failed)))
	if sel.quote {
		return text + sel.where.First.Error()
	}
	return text + sel.where.FirstAt
}

// choose returns a topic on which the sender of the request has a role, and a selection of its
// letters. A filter by what is in the records takes the role reader.
func (s *Server) choose(ctx context.Context, name string, f *api.Filter, least access.Role) (*topic, *selection, error) {
	if len(f.Key)+len(f.Header)+len(f.Where) > 0 {
		least = max(least, access.Reader)
	}
	t, err := s.topicFor(ctx, name, least)
	if err != nil {
		return nil, nil, err
	}
	sel, err := s.compile(f, max(int32(t.Partitions), t.book.Partitions())) // some may have come
	return t, sel, err
}

// chooseOpen is choose for what is done to open letters.
func (s *Server) chooseOpen(ctx context.Context, name string, f *api.Filter) (*topic, *selection, error) {
	if len(f.State) > 0 {
		return nil, nil, problem(api.BadFilter, "state: only open letters can be chosen here: leave it out")
	}
	return s.choose(ctx, name, f, access.Operator)
}

// openState stands for all states of open letters.
const openState = "open"

// compile makes a selection of a filter. Its error has all problems.
func (s *Server) compile(f *api.Filter, partitions int32) (*selection, error) {
	sel := &selection{quote: s.redact == nil, filter: dlq.Filter{
		Classes: f.Class, Fingerprints: f.Fingerprint, Groups: f.Group, Since: f.Since, Until: f.Until, EnteredSince: f.EnteredSince, EnteredUntil: f.EnteredUntil,
	}}
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, c := range f.Class {
		if !classify.ValidClass(c) {
			complain("class: %q is not a class: letters, digits and _ . * / - only", c)
		}
	}
	for _, r := range f.Reason {
		sel.filter.Reasons = append(sel.filter.Reasons, headers.Reason(r))
	}
	for _, state := range f.State {
		switch {
		case state == openState:
			sel.filter.States = append(sel.filter.States, "", dlq.Unknown, dlq.Reopened)
		case slices.Contains(states, dlq.State(state)):
			sel.filter.States = append(sel.filter.States, dlq.State(state))
		default:
			complain("state: %q is not a state: choose %s, %s", state, openState, strings.Join(stateNames(), ", "))
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) || !f.EnteredSince.IsZero() && !f.EnteredUntil.IsZero() && !f.EnteredSince.Before(f.EnteredUntil) {
		complain("until: it is not after since")
	}
	var err error
	var named []string
	for _, p := range f.Partition {
		named = append(named, fmt.Sprint(p))
	}
	if sel.filter.Ranges, err = where.ParseRanges("", named, f.Offset); err != nil {
		complain("%v", err)
	}
	for _, r := range sel.filter.Ranges {
		if r.Partition >= partitions {
			complain("partition: there is no partition %d: the topic has %d, from 0 on", r.Partition, partitions)
		}
	}
	attempts := where.Span{To: math.MaxInt64}
	if f.Attempts != "" {
		if attempts, err = where.ParseSpan(f.Attempts); err != nil {
			complain("attempts: %v", err)
		}
	}
	if f.Where != "" {
		if sel.where, err = where.Compile(f.Where); err != nil {
			complain("where: %v", err)
		}
	}
	if len(wrong) > 0 {
		return nil, problem(api.BadFilter, "%s", strings.Join(wrong, "; "))
	}
	if readsLetters(f) {
		carries := dlq.Filter{Keys: f.Key, Headers: headerValues(f.Header)}
		sel.reads = func(l *dlq.Letter) bool {
			l, _ = s.redact.Letter(l) // what is hidden cannot be asked for
			return attempts.Has(int64(l.Meta.Attempts)) && carries.Selects(l) && (sel.where == nil || sel.where.Match(l))
		}
	}
	return sel, nil
}

// readsLetters reports whether a filter takes reading the letters: the book does not know what they
// carry, nor their attempts.
func readsLetters(f *api.Filter) bool {
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

// headerValues returns the values of each header that must be there, none for any.
func headerValues(all []string) map[string][]string {
	values := map[string][]string{}
	for _, h := range all {
		name, value, exact := strings.Cut(h, "=")
		if exact {
			values[name] = append(values[name], value)
		} else if _, named := values[name]; !named {
			values[name] = nil
		}
	}
	return values
}
