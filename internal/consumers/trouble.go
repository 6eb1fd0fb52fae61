package consumers

import (
	"fmt"
	"strings"
	"time"
)

// The kinds of troubles. A lane has one of each kind at most.
const (
	KindBlocked     = "blocked" // no record runs
	KindPaused      = "paused"
	KindUnassigned  = "unassigned"
	KindTransaction = "transaction"
	KindSuspects    = "suspects"
)

// Kinds are the kinds of troubles.
var Kinds = []string{KindBlocked, KindPaused, KindUnassigned, KindTransaction, KindSuspects}

// Trouble is one thing that several lanes of a use have in common.
type Trouble struct {
	Kind, Text string
	Since      time.Time // the first; zero if it is not known
	Partitions []int32
	Lag        int64 // of these; Unknown
}

// maxNamed bounds how many partitions a text names.
const maxNamed = 8

// Of names the partitions: "partition 3", "partitions 3, 7", "all 12 partitions".
func (t *Trouble) Of(partitions int) string {
	n := len(t.Partitions)
	switch n {
	case 1:
		return fmt.Sprintf("partition %d", t.Partitions[0])
	case partitions:
		return fmt.Sprintf("all %d partitions", n)
	}
	var b strings.Builder
	b.WriteString("partitions ")
	for i, p := range t.Partitions[:min(n, maxNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, p)
	}
	if n > maxNamed {
		fmt.Fprintf(&b, " and %d more", n-maxNamed)
	}
	return b.String()
}
