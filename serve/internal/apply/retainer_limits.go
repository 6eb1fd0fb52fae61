package apply

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/duration"
	"github.com/sidingkafka/siding/serve/internal/operate"
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

// Report is what a retention deletes from a topic, or would delete.
type Report struct {
	Topic string
	At    time.Time
	// Limits has the limits in words, as the ledger has them.
	Limits string
	// Until has, for each partition with letters to delete, the offset of the first that stays.
	Until map[int32]int64
	// Letters is how many letters go. Open and Discarded are how many of them are open or without
	// an outcome, and how many were discarded.
	Letters, Open, Discarded int64
	// Held is how many letters stay though they are beyond the limits: they are open, or stand
	// behind a letter that stays.
	Held int64
	// Expiring is how many letters are archived because Kafka's own retention is about to delete
	// them.
	Expiring int64
	// Archives are where letters were written, and the folder where they would be written.
	Archives []string
	// Waits is the run that has to end before letters are deleted; empty if there is none.
	Waits string
}

// Shown returns the report as the API shows it.
func (r *Report) Shown() api.RetentionReport {
	is := api.RetentionReport{
		Topic: r.Topic, At: r.At.UTC(), Limits: r.Limits, Until: map[string]int64{}, Letters: r.Letters, Open: r.Open, Discarded: r.Discarded, Held: r.Held,
		Expiring: r.Expiring, Archives: operate.Listed(r.Archives), Waits: r.Waits,
	}
	for partition, offset := range r.Until {
		is.Until[fmt.Sprint(partition)] = offset
	}
	return is
}
