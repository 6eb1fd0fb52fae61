package cli

import (
	"fmt"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// A resourceError is an error about one of the cluster's resources. A missing permission is a
// *redrive.DeniedError instead, whose text has the command that grants it.
type resourceError struct{ error }

// OnTopic adds to an error its topic and the operation on it that needs a permission. Nil stays
// nil.
func OnTopic(op, topic string, err error) error { return OnResource(op, "topic", topic, err) }

// OnResource is OnTopic for a resource of any kind.
func OnResource(op, resource, name string, err error) error {
	if err == nil || aboutResource(err) {
		return err
	}
	if denied := permission.Denied(op, resource, name, err); IsA[*redrive.DeniedError](denied) {
		return denied
	}
	return &resourceError{fmt.Errorf("%s %s: %w", resource, name, err)}
}

// aboutResource reports whether an error already names its resource.
func aboutResource(err error) bool {
	return IsA[*resourceError](err) || IsA[*redrive.DeniedError](err)
}

func (e *resourceError) Unwrap() error { return e.error }
