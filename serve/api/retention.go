package api

import "time"

// RetentionReport is what the retention of a topic deletes, or would delete.
type RetentionReport struct {
	Topic  string    `json:"topic"`
	At     time.Time `json:"at"`
	Limits string    `json:"limits" doc:"The limits in words, as the ledger has them."`
	// Until has by partition the first letter that stays.
	Until     map[string]int64 `json:"until" doc:"By partition with letters that go: the offset of the first that stays."`
	Letters   int64            `json:"letters" doc:"How many go."`
	Open      int64            `json:"open" doc:"How many of these are open, or without an outcome."`
	Discarded int64            `json:"discarded" doc:"How many of these were discarded."`
	Held      int64            `json:"held" doc:"How many stay though they are beyond the limits: they are open, or stand behind a letter that stays."`
	Expiring  int64            `json:"expiring" doc:"How many are archived since Kafka's own retention is about to delete them."`
	Archives  []string         `json:"archives" doc:"Where letters are written before."`
	Waits     string           `json:"waits,omitempty" doc:"Id of the run that has to end before letters are deleted."`
}
