package retrytopics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
