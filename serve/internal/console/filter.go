package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// Filter selects letters. It is what an address says, so that a link shows the same to everybody.
type Filter struct {
	Classes, Fingerprints, Groups, Reasons []string
	// Offsets are places of letters, as in 0:119.
	Offsets []string
	// State is a state of letters, or "all"; empty means those that are open.
	State string
	// Since (inclusive) and Until (exclusive) bound the time of the last failure; zero means no
	// bound.
	Since, Until time.Time
	// Where is an expression over what is in the letters, for readers. Groups and times are counted
	// without it.
	Where string
	// Cursor is the place of a later page; empty for the first one.
	Cursor string

	since, until string // as the address has them
}

const (
	mostValues = 50   // of one key of an address
	mostLength = 4096 // of a value, in bytes
)

// filterStates are the states that a filter can have.
var filterStates = []string{
	"all", string(dlq.Redriven), string(dlq.Succeeded), string(dlq.Failed), string(dlq.Discarded), string(dlq.Compensated), string(dlq.Reopened),
	string(dlq.Expired), string(dlq.Duplicate), string(dlq.Unknown), string(dlq.Unfollowed),
}

// states returns the states of the letters that a filter selects; none if it leaves that open.
func (f *Filter) states() []string {
	switch f.State {
	case "":
		return nil
	case "all":
		return append([]string{"open"}, filterStates[1:]...)
	}
	return []string{f.State}
}

// api returns the filter as operations take it.
func (f *Filter) api() api.Filter {
	return api.Filter{Class: f.Classes, Fingerprint: f.Fingerprints, Group: f.Groups, Reason: f.Reasons, Offset: f.Offsets, State: f.states(), Where: f.Where, Since: f.Since, Until: f.Until}
}

// parseFilter reads an address. Keys that it does not know are not its own.
func parseFilter(q url.Values, now time.Time) (f Filter, err error) {
	for key, values := range q {
		if len(values) > mostValues {
			return Filter{}, badInput("%q occurs %d times in the address: at most %d", key, len(values), mostValues)
		}
		for _, v := range values {
			if len(v) > mostLength {
				return Filter{}, badInput("the value of %q in the address has %d bytes: at most %d", key, len(v), mostLength)
			}
		}
	}
	texts := func(key string) (all []string) {
		for _, v := range q[key] {
			if v = strings.TrimSpace(v); v != "" && !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		return all
	}
	f = Filter{Classes: texts("class"), Fingerprints: texts("fingerprint"), Groups: texts("group"), Reasons: texts("reason"), Offsets: texts("offset"), State: q.Get("state"), Where: strings.TrimSpace(q.Get("where")), Cursor: q.Get("cursor")}
	if f.State != "" && !slices.Contains(filterStates, f.State) {
		return Filter{}, badInput("%q is no state of letters: %s", f.State, list(filterStates))
	}
	f.since, f.until = strings.TrimSpace(q.Get("since")), strings.TrimSpace(q.Get("until"))
	if f.Since, err = parseTime("since", f.since, now); err != nil {
		return Filter{}, err
	}
	if f.Until, err = parseTime("until", f.until, now); err != nil {
		return Filter{}, err
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return Filter{}, badInput("since is not before until: no letter is in between")
	}
	return f, nil
}

// parseTime reads a time, or how long ago it was: 6h, 2d.
func parseTime(key, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() < 10000 {
			return at, nil
		}
	}
	return time.Time{}, badInput("%s: %q is not a time: as in 6h or 2d, for so long ago, or 2026-11-23T17:00Z in UTC", key, text)
}

// query returns the filter as an address has it, in one spelling.
func (f *Filter) query() string {
	if q := f.values(); len(q) > 0 {
		return "?" + q.Encode()
	}
	return ""
}

// values returns the keys and values of the filter's address.
func (f *Filter) values() url.Values {
	q := url.Values{}
	set := func(key string, values ...string) {
		for _, v := range values {
			if v != "" {
				q.Add(key, v)
			}
		}
	}
	set("class", f.Classes...)
	set("fingerprint", f.Fingerprints...)
	set("group", f.Groups...)
	set("reason", f.Reasons...)
	set("offset", f.Offsets...)
	set("state", f.State)
	set("where", f.Where)
	set("since", f.since)
	set("until", f.until)
	set("cursor", f.Cursor)
	return q
}

// with returns the filter as an address has it, with one key more.
func (f *Filter) with(key, value string) string {
	q := f.values()
	q.Set(key, value)
	return "?" + q.Encode()
}

// between returns the filter with other bounds, from its first page on.
func (f Filter) between(since, until time.Time) Filter {
	f.Since, f.Until, f.Cursor = since, until, ""
	f.since, f.until = since.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)
	return f
}

// placesText names places of letters; of many the first.
func placesText(places []string) string {
	const most = 3
	var names []string
	for _, p := range places[:min(len(places), most)] {
		names = append(names, strings.ReplaceAll(p, ":", "/"))
	}
	if more := len(places) - most; more > 0 {
		names = append(names, number.Format(int64(more))+" more")
	}
	return list(names)
}

// fix makes times that are so long ago those that they are now.
func (f *Filter) fix() {
	f.Cursor = ""
	for _, t := range []struct {
		at   *time.Time
		text *string
	}{{&f.Since, &f.since}, {&f.Until, &f.until}} {
		if !t.at.IsZero() {
			*t.at = t.at.Truncate(time.Millisecond)
			*t.text = t.at.UTC().Format(time.RFC3339Nano)
		}
	}
}

// chip is a part of a filter that can be taken away.
type chip struct{ Key, Value, Without string }

// chips returns the parts of a filter, each with the address without it.
func (f Filter) chips(path string) (all []chip) {
	f.Cursor = ""
	add := func(key, value string, without func(f *Filter)) {
		rest := f
		without(&rest)
		all = append(all, chip{key, value, path + rest.query()})
	}
	for _, l := range []struct {
		key string
		of  func(f *Filter) *[]string
	}{
		{"class", func(f *Filter) *[]string { return &f.Classes }},
		{"fingerprint", func(f *Filter) *[]string { return &f.Fingerprints }},
		{"group", func(f *Filter) *[]string { return &f.Groups }},
		{"reason", func(f *Filter) *[]string { return &f.Reasons }},
	} {
		for i, v := range *l.of(&f) {
			add(l.key, v, func(f *Filter) { *l.of(f) = slices.Delete(slices.Clone(*l.of(f)), i, i+1) })
		}
	}
	if len(f.Offsets) > 0 {
		add("letters", placesText(f.Offsets), func(f *Filter) { f.Offsets = nil })
	}
	if f.State != "" {
		add("state", f.State, func(f *Filter) { f.State = "" })
	}
	if f.Where != "" {
		add("where", f.Where, func(f *Filter) { f.Where = "" })
	}
	if f.since != "" {
		add("since", f.since, func(f *Filter) { f.since = "" })
	}
	if f.until != "" {
		add("until", f.until, func(f *Filter) { f.until = "" })
	}
	return all
}
