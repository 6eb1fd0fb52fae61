package request

import "github.com/sidingkafka/siding/serve/api"

// Letters asks for a page of letters.
type Letters struct {
	Topic
	api.Filter
	Cursor string `query:"cursor" maxLength:"10000" doc:"What next was on the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"Letters on a page."`
}

// Groups asks for the open letters by class and fingerprint.
type Groups struct {
	Topic
	api.Filter
}

// Letter names a letter.
type Letter struct {
	Topic
	Partition int32 `path:"partition" minimum:"0" maximum:"2147483647"` // huma cuts what is larger
	Offset    int64 `path:"offset" minimum:"0"`
}
