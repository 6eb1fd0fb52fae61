package selection

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/where"
)

// Flags are the options of the command line.
type Flags struct {
	classes, fingerprints, reasons, groups []string
	states                                 []string
	since, until                           string
	enteredSince, enteredUntil             string
	keys, headers                          []string
	partitions, offsets                    []string
	attempts, where                        string
}

// AddFlags puts them into a set.
func AddFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{}
	set.StringSliceVar(&f.classes, "class", nil, "error `class`, as summary prints it, or the beginning of classes and *, as in 'payment.*'; several by comma or by repeating")
	set.StringSliceVar(&f.fingerprints, "fingerprint", nil, "`fingerprint` of the error, as summary prints it")
	set.StringSliceVar(&f.reasons, "reason", nil, "`reason`: "+strings.Join(Reasons, ", "))
	set.StringSliceVar(&f.states, "state", nil, "`state` in the ledger: "+strings.Join(States, ", "))
	set.StringSliceVar(&f.groups, "group", nil, "consumer `group` that failed")
	set.StringVar(&f.since, "since", "", "failed at this `time` or later: 2h (ago), 2026-11-20, 2026-11-20T08:00 (local), or RFC 3339")
	set.StringVar(&f.until, "until", "", "failed before this `time`")
	set.StringVar(&f.enteredSince, "entered-since", "", "came into the dead-letter topic at this `time` or later")
	set.StringVar(&f.enteredUntil, "entered-until", "", "came into the dead-letter topic before this `time`")
	set.StringArrayVar(&f.keys, "key", nil, "record `key`, exactly; repeat for several")
	set.StringSliceVar(&f.partitions, "partition", nil, "`partition` of the dead-letter topic")
	set.StringSliceVar(&f.offsets, "offset", nil, "`P:FROM-TO`, both included, or P:OFFSET, P:FROM-, P:-TO; several are joined")
	set.StringArrayVar(&f.headers, "header", nil, "has the header `name=value`, or name with any value; all names that are given must fit, and one of the values of each")
	set.StringVar(&f.attempts, "attempts", "", "`number` of attempts, or FROM-TO, FROM-, -TO")
	set.StringVar(&f.where, "where", "", "`expression` over class, fingerprint, reason, group, message, attempts, partition, offset, topic, key, text, value (JSON), headers, failedAt, firstFailedAt, timestamp and redrives")
	return f
}

// Reasons lists the values of --reason, for help and completion: the reasons that consumers write.
var Reasons = []string{
	string(headers.ReasonPanic), string(headers.ReasonMalformed), string(headers.ReasonUnsupportedVersion), string(headers.ReasonDecode),
	string(headers.ReasonUnroutable), string(headers.ReasonTooLarge), string(headers.ReasonExpired),
	string(headers.ReasonExhausted), string(headers.ReasonTerminal),
}

// reserved are reasons of the format that no consumer writes yet. --reason takes them, since a
// newer consumer may have written them, but help and completion do not list them.
var reserved = []string{string(headers.ReasonCrashLoop), string(headers.ReasonHeld)}

// States lists what --state takes, for help and completion. The states other than "open" are those
// of the ledger's entries.
var States = []string{
	open, string(dlq.Unknown), string(dlq.Reopened), string(dlq.Redriven), string(dlq.Succeeded), string(dlq.Failed),
	string(dlq.Discarded), string(dlq.Compensated), string(dlq.Unfollowed), string(dlq.Duplicate),
}

// open stands for all states of open letters.
const open = "open"

// Compile makes a selection of the flags. Its error has every problem, one a line. Durations count
// back from now.
func (f *Flags) Compile(now time.Time) (*Selection, error) {
	s := &Selection{}
	var errs []error
	complain := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	for _, class := range f.classes {
		if !classify.ValidClass(class) {
			complain("class", fmt.Errorf("%q is not a class: letters, digits and _ . * / - only; summary lists the classes", class))
		}
	}
	for _, print := range f.fingerprints {
		if len(print) != 16 || strings.Trim(print, "0123456789abcdef") != "" {
			complain("fingerprint", fmt.Errorf("%q is not 16 digits of 0 to 9 and a to f; summary lists the fingerprints", print))
		}
	}
	for _, r := range f.reasons {
		if !slices.Contains(Reasons, r) && !slices.Contains(reserved, r) {
			complain("reason", fmt.Errorf("%q is not a reason: choose %s", r, strings.Join(Reasons, ", ")))
		}
		s.Filter.Reasons = append(s.Filter.Reasons, headers.Reason(r))
	}
	for _, state := range f.states {
		switch {
		case !slices.Contains(States, state):
			complain("state", fmt.Errorf("%q is not a state: choose %s", state, strings.Join(States, ", ")))
		case state == open:
			s.Filter.States = append(s.Filter.States, "", dlq.Unknown, dlq.Reopened)
		default:
			s.Filter.States = append(s.Filter.States, dlq.State(state))
		}
	}
	s.Filter.Classes, s.Filter.Fingerprints, s.Filter.Groups, s.Filter.Keys = f.classes, f.fingerprints, f.groups, f.keys

	period := func(since, from, until, to string) (a, b time.Time) {
		a, err := ParseTime(from, now)
		complain(since, err)
		b, err = ParseTime(to, now)
		complain(until, err)
		if !a.IsZero() && !b.IsZero() && !a.Before(b) {
			errs = append(errs, fmt.Errorf("--%s %s is not before --%s %s: there is no time between", since, from, until, to))
		}
		return a, b
	}
	s.Filter.Since, s.Filter.Until = period("since", f.since, "until", f.until)
	s.Filter.EnteredSince, s.Filter.EnteredUntil = period("entered-since", f.enteredSince, "entered-until", f.enteredUntil)

	var err error
	s.Filter.Ranges, err = where.ParseRanges("--", f.partitions, f.offsets)
	errs = append(errs, err)
	s.Filter.Headers = where.ParseHeaders(f.headers)

	attempts := where.Span{To: math.MaxInt64}
	if f.attempts != "" {
		attempts, err = where.ParseSpan(f.attempts)
		complain("attempts", err)
	}
	if f.where != "" {
		s.Where, err = where.Compile(f.where)
		complain("where", err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if f.attempts != "" || f.where != "" {
		s.Filter.Match = func(l *dlq.Letter) bool {
			return attempts.Has(int64(l.Meta.Attempts)) && s.where(l)
		}
	}
	return s, nil
}
