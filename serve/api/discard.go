package api

// DiscardRequest discards a letter.
type DiscardRequest struct {
	Why         string `json:"why" minLength:"1" maxLength:"4096" doc:"Reason, for the ledger; 4,096 bytes at most."`
	Compensated bool   `json:"compensated,omitempty" doc:"A compensating action resolved what the record asked for."`
}

// BulkDiscardRequest discards the open letters that a filter selects.
type BulkDiscardRequest struct {
	Filter Filter `json:"filter,omitempty" doc:"Which of the open letters; all, if it is empty."`
	Expect int64  `json:"expect" minimum:"1" doc:"Number of letters that the filter selects. With another number nothing is done."`
	DiscardRequest
}

// ReopenRequest withdraws that a letter was discarded, or redriven to where no consumer can have
// it.
type ReopenRequest struct {
	Why string `json:"why" minLength:"1" maxLength:"4096" doc:"Reason, for the ledger; 4,096 bytes at most."`
}

// Resolved is how many letters an operator's decision changed.
type Resolved struct {
	Letters int64 `json:"letters"`
}
