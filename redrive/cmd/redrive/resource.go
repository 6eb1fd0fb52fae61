package main

import (
	"fmt"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// A resourceError is an error about one of the cluster's resources. A missing permission is a
// *redrive.DeniedError instead, which says how to grant it.
type resourceError struct {
	resource, name string // topic or group
	err            error
}

// onTopic adds to an error its topic and the operation on it that needs a permission. Nil stays
// nil.
func onTopic(op, topic string, err error) error { return on(op, "topic", topic, err) }

// onGroup is onTopic for consumer groups.
func onGroup(op, group string, err error) error { return on(op, "group", group, err) }

func on(op, resource, name string, err error) error {
	if err == nil || aboutResource(err) {
		return err
	}
	if denied := permission.Denied(op, resource, name, err); isA[*redrive.DeniedError](denied) {
		return denied
	}
	return &resourceError{resource: resource, name: name, err: err}
}

// aboutResource reports whether an error already names its resource.
func aboutResource(err error) bool {
	return isA[*resourceError](err) || isA[*redrive.DeniedError](err)
}

func (e *resourceError) Error() string { return fmt.Sprintf("%s %s: %v", e.resource, e.name, e.err) }
func (e *resourceError) Unwrap() error { return e.err }
