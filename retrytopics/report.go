package retrytopics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report lists the changes and findings of [Ensure].
type Report struct {
	// Created names the siblings that this call created.
	Created []string
	// Grown lists the siblings to which this call added partitions.
	Grown []Growth
	// Differences lists how existing siblings are weaker than those that Ensure would have created.
	// None of them loses records; such differences are errors.
	Differences []Difference
	// Partitions holds the number of partitions of each source and sibling.
	Partitions map[string]int32
}

// Growth is a topic with more partitions than before.
type Growth struct {
	Topic    string
	From, To int32
}

// Difference is one setting of an existing sibling that differs from the wanted value. Setting is
// the name of a topic config, or replication.factor.
type Difference struct {
	Topic, Setting string
	Want, Have     string
}

// String describes the difference in a sentence.
func (d Difference) String() string {
	want, have := d.Want, d.Have
	if strings.HasSuffix(d.Setting, ".ms") {
		want, have = fmt.Sprintf("%s (%s)", want, humanMS(want)), fmt.Sprintf("%s (%s)", have, humanMS(have))
	}
	return fmt.Sprintf("%s has %s=%s, wanted is %s", d.Topic, d.Setting, have, want)
}

// Command returns the command that removes the difference, for a shell where BOOTSTRAP is set. It
// is empty for the replication factor, which needs a reassignment plan.
func (d Difference) Command() string {
	if d.Setting == replicationFactor {
		return ""
	}
	return alterConfigCommand(d.Topic, d.Setting, d.Want)
}

// String formats the report for a log, one line for each change or finding. An empty report is
// "siblings are as wanted".
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
