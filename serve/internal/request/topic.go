package request

// Nothing is the input of an operation that takes none.
type Nothing struct{}

// Topic names a dead-letter topic.
type Topic struct {
	Topic string `path:"topic" maxLength:"249" doc:"Name of the dead-letter topic."`
}
