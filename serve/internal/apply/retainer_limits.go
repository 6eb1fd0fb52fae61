package apply

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/duration"
)

// Limits are the retention of a topic, as package serve documents it.
type Limits struct {
	MaxAge   time.Duration
	MaxCount int64
	Open     bool
	Archive  string
	Every    time.Duration
}

// limits returns what package dlq knows of the retention.
func (r Limits) limits() dlq.Retention {
	return dlq.Retention{MaxAge: max(r.MaxAge, 0), MaxCount: r.MaxCount, Open: r.Open}
}

// String says in words what goes, for the ledger.
func (r Limits) String() string {
	var limits []string
	if r.MaxAge > 0 {
		limits = append(limits, "max-age "+duration.Short(r.MaxAge))
	}
	if r.MaxCount > 0 {
		limits = append(limits, fmt.Sprintf("max-count %d", r.MaxCount))
	}
	if r.Open {
		limits = append(limits, "open ones too")
	}
	return strings.Join(limits, ", ")
}
