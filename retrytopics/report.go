package retrytopics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report is what [Ensure] did and found.
type Report struct {
	// Created names the siblings that this call created.
	Created []string
	// Grown lists the siblings that this call gave more partitions.
	Grown []Growth
	// Differences lists where siblings that were there are weaker than what
	// Ensure would have created. None of them loses records; those are errors.
	Differences []Difference
	// Partitions holds the number of partitions of each source and sibling.
	Partitions map[string]int32
}

// Growth is a topic that has more partitions than before.
type Growth struct {
	Topic    string
	From, To int32
}

// Difference is one setting of an existing sibling that is not as wanted.
// Setting is the name of a topic config, or replication.factor.
type Difference struct {
	Topic, Setting string
	Want, Have     string
}

// String says the difference in a sentence.
func (d Difference) String() string {
	want, have := d.Want, d.Have
	if strings.HasSuffix(d.Setting, ".ms") {
		want, have = fmt.Sprintf("%s (%s)", want, humanMS(want)), fmt.Sprintf("%s (%s)", have, humanMS(have))
	}
	return fmt.Sprintf("%s has %s=%s, wanted is %s", d.Topic, d.Setting, have, want)
}

// Command returns the command that takes the difference away, to be run where
// BOOTSTRAP is set. It is empty for the replication factor, which needs a plan of
// reassignment.
func (d Difference) Command() string {
	if d.Setting == replicationFactor {
		return ""
	}
	return alterConfigCommand(d.Topic, d.Setting, d.Want)
}

// String renders the report for a log, a line for each thing done or found. The
// empty report of a call that had nothing to do is "siblings are as wanted".
func (r Report) String() string {
	var lines []string
	for _, t := range r.Created {
		lines = append(lines, fmt.Sprintf("created %s with %d partitions", t, r.Partitions[t]))
	}
	for _, g := range r.Grown {
		lines = append(lines, fmt.Sprintf("grew %s from %d to %d partitions", g.Topic, g.From, g.To))
	}
	for _, d := range r.Differences {
		lines = append(lines, d.String())
	}
	if len(lines) == 0 {
		return "siblings are as wanted"
	}
	return strings.Join(lines, "\n")
}

func (r *Report) count(topics map[string]*topic) {
	r.Partitions = make(map[string]int32, len(topics))
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		r.Partitions[name] = topics[name].partitions
	}
}
