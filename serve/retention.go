package serve

import (
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// Retention says for how long the server keeps the letters of a dead-letter topic, and how many.
// The stricter limit counts, and the oldest letters go first, by when they entered the topic. Kafka
// deletes from the beginning of a partition only: a letter that stays keeps those behind it.
type Retention struct {
	// MaxAge is for how long a letter stays; a negative one sets no limit. Default 180d.
	MaxAge time.Duration `yaml:"max-age"`
	// MaxCount is how many letters of the topic stay, the newest ones. Default any number.
	MaxCount int64 `yaml:"max-count"`
	// Open makes the limits count for letters that are open or have no outcome, too. Otherwise
	// these stay. Default false.
	Open bool `yaml:"open"`
	// Archive is the folder into which letters are written before they are deleted: a directory, or
	// s3://bucket/folder. Letters that Kafka's own retention is about to delete are written there,
	// too. Without it letters are deleted only. Default none.
	Archive string `yaml:"archive"`
	// Every is how often the topic is judged, at least 1s. Default 1h.
	Every time.Duration `yaml:"every"`
}

const defaultMaxAge = 180 * 24 * time.Hour

func (r Retention) withDefaults() Retention {
	if r.MaxAge == 0 {
		r.MaxAge = defaultMaxAge
	}
	if r.Every == 0 {
		r.Every = time.Hour
	}
	return r
}

func (r Retention) check(s archive.S3, wrong func(key, format string, args ...any)) {
	full := r.withDefaults()
	if r.MaxCount < 0 {
		wrong("max-count", "%d: the number of letters that stay, at least 1; 0 sets no limit", r.MaxCount)
	}
	if r.MaxAge < 0 && r.MaxCount == 0 {
		wrong("max-age", "%v sets no limit, and max-count sets none: at least one of them is needed", r.MaxAge)
	}
	if full.Every < time.Second {
		wrong("every", "%v: at least 1s", r.Every)
	}
	if r.Archive != "" {
		if _, err := archive.ParseFolder(r.Archive, s); err != nil {
			wrong("archive", "%s", strings.TrimPrefix(err.Error(), "archive: "))
		}
	}
}

// ErrNoRetention reports that the configuration sets no retention on a topic.
var ErrNoRetention = failure.ErrNoRetention

// ErrRetentionGoesOn reports that a retention was not applied, since an earlier call had not ended.
var ErrRetentionGoesOn = failure.ErrRetentionGoesOn

// ErrNoLedger reports that the ledger of a dead-letter topic does not exist, so what is done could
// not be recorded, and is not done. The error around it says what to create.
var ErrNoLedger = failure.ErrNoLedger
