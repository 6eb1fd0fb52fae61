package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Filter selects letters, in the words of the program's flags. A letter is selected if it fits
// every field that is set; it fits a list if it fits one of its values. The zero value selects all.
// The server refuses a field that is sent empty: it may come from a variable that is not set.
//
// The last four, key, header, attempts and where, take reading the letters. Key, header and where
// need the role reader, because an answer shows what is in a record. What the server's
// configuration hides from all, they do not see either.
//
// The yaml tags are the keys of a rule in the server's file of rules.
type Filter struct {
	Class        []string  `json:"class,omitempty" query:"class,explode" yaml:"classes" doc:"Class of the error; one that ends in * stands for all that begin with the rest."`
	Fingerprint  []string  `json:"fingerprint,omitempty" query:"fingerprint,explode" yaml:"fingerprints" doc:"Fingerprint of the error."`
	Group        []string  `json:"group,omitempty" query:"group,explode" yaml:"groups" doc:"Consumer group that failed."`
	Reason       []string  `json:"reason,omitempty" query:"reason,explode" yaml:"reasons" doc:"Reason of the letter, as terminal or exhausted."`
	State        []string  `json:"state,omitempty" query:"state,explode" yaml:"-" doc:"State of the letter, or open for all states of open letters. In a list, letters of these states are shown although they are resolved. A run, a plan and a discard take open letters only."`
	Since        time.Time `json:"since,omitzero" query:"since" yaml:"since" doc:"Time of the last failure, inclusive."`
	Until        time.Time `json:"until,omitzero" query:"until" yaml:"until" doc:"Time of the last failure, exclusive."`
	EnteredSince time.Time `json:"enteredSince,omitzero" query:"enteredSince" yaml:"entered-since" doc:"Time at which the letter was written, inclusive."`
	EnteredUntil time.Time `json:"enteredUntil,omitzero" query:"enteredUntil" yaml:"entered-until" doc:"Time at which the letter was written, exclusive."`
	Partition    []int32   `json:"partition,omitempty" query:"partition,explode" yaml:"-" doc:"Partition of the dead-letter topic."`
	Offset       []string  `json:"offset,omitempty" query:"offset,explode" yaml:"-" maxItems:"1000" doc:"P:FROM-TO, both included, or P:OFFSET, P:FROM-, P:-TO, where P is a partition."`
	Key          []string  `json:"key,omitempty" query:"key,explode" yaml:"keys" doc:"Key of the record, exactly."`
	Header       []string  `json:"header,omitempty" query:"header,explode" yaml:"headers" doc:"Header name=value, or name with any value. All names must fit, and one of the values of each."`
	Attempts     string    `json:"attempts,omitempty" query:"attempts" yaml:"attempts" doc:"Number of attempts, or FROM-TO, FROM-, -TO."`
	Where        string    `json:"where,omitempty" query:"where" yaml:"where" maxLength:"4096" doc:"Expression over class, fingerprint, reason, group, message, attempts, partition, offset, topic, key, text, value (JSON), headers, failedAt, firstFailedAt, timestamp and redrives, in the language of expr-lang.org."`
}

// UnmarshalJSON refuses what is sent empty. Only a key may be: a record's is.
func (f *Filter) UnmarshalJSON(text []byte) error {
	var sent map[string]any
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	for name, is := range sent {
		values, isList := is.([]any)
		if !isList {
			values = []any{is}
		}
		if len(values) == 0 || !strings.EqualFold(name, "key") && slices.ContainsFunc(values, isBlank) {
			return fmt.Errorf("filter.%s is empty: %s", name, EmptyFilter)
		}
	}
	type plain Filter
	return json.Unmarshal(text, (*plain)(f))
}

// EmptyFilter says why the server refuses an empty part of a filter, and what to do.
const EmptyFilter = "perhaps because a variable is not set: give a value, or leave it out"

func isBlank(v any) bool {
	text, isText := v.(string)
	return isText && strings.TrimSpace(text) == ""
}
