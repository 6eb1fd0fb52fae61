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

// The commands are those of Apache Kafka's own tools. This package does not know the brokers'
// addresses, so they come from the shell's variable BOOTSTRAP.
const bootstrap = `--bootstrap-server "$BOOTSTRAP"`

func (w wanted) createCommand() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-topics.sh %s --create --topic %s --partitions %d --replication-factor %d", bootstrap, w.topic, w.partitions, w.replicas)
	for _, config := range slices.Sorted(maps.Keys(w.configs)) {
		fmt.Fprintf(&b, " --config %s", shellQuote(config+"="+w.configs[config]))
	}
	return b.String()
}

func (w wanted) growCommand() string {
	return fmt.Sprintf("kafka-topics.sh %s --alter --topic %s --partitions %d", bootstrap, w.topic, w.partitions)
}

func alterConfigCommand(topic, config, value string) string {
	// kafka-configs.sh reads a comma as the start of the next config, unless in brackets.
	if strings.Contains(value, ",") {
		value = "[" + value + "]"
	}
	return fmt.Sprintf("kafka-configs.sh %s --alter --topic %s --add-config %s", bootstrap, topic, shellQuote(config+"="+value))
}

// shellQuote quotes text for a POSIX shell, if it needs quotes.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-=,:/@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
