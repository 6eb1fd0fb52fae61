package main

import (
	"fmt"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// A resourceError is what went wrong with one of a cluster's resources. Where it is a right that is missing, it is a
// *redrive.DeniedError instead, which says how to have it granted.
type resourceError struct {
	resource, name string // topic or group
	err            error
}

// onTopic says which topic an error is about, and which operation on it the user must be allowed. Nil stays nil.
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

// aboutResource reports whether an error says already what it is about.
func aboutResource(err error) bool {
	return isA[*resourceError](err) || isA[*redrive.DeniedError](err)
}

func (e *resourceError) Error() string { return fmt.Sprintf("%s %s: %v", e.resource, e.name, e.err) }
func (e *resourceError) Unwrap() error { return e.err }
