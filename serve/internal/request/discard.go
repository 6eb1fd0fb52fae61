package request

import "github.com/sidingkafka/siding/serve/api"

// Discard discards a letter.
type Discard struct {
	Letter
	Body api.DiscardRequest
}

// BulkDiscard discards the letters that a filter selects.
type BulkDiscard struct {
	Topic
	Body api.BulkDiscardRequest
}

// Reopen withdraws that a letter was discarded, or redriven to where no consumer can have its copy.
type Reopen struct {
	Letter
	Body api.ReopenRequest
}

// Export asks for letters, byte for byte.
type Export struct {
	Topic
	api.Filter
	All bool `query:"all" doc:"Resolved letters and copies, too."`
}
