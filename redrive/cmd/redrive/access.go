package main

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// An accessError is what a broker said about one of its resources, in words that say what to do.
type accessError struct {
	op       string // the ACL operation that it takes: READ, DESCRIBE, …
	resource string // topic, group, transactional-id
	name     string
	err      error
}

// onTopic says which topic an error is about, and which operation on it the user must be allowed. Nil stays nil.
func onTopic(op, topic string, err error) error { return on(op, "topic", topic, err) }

// onGroup is onTopic for consumer groups.
func onGroup(op, group string, err error) error { return on(op, "group", group, err) }

func on(op, resource, name string, err error) error {
	if err == nil || isA[*accessError](err) {
		return err
	}
	return &accessError{op: op, resource: resource, name: name, err: err}
}

func (e *accessError) Error() string {
	switch {
	case errors.Is(e.err, kerr.TopicAuthorizationFailed), errors.Is(e.err, kerr.GroupAuthorizationFailed), errors.Is(e.err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Sprintf("not authorized: the user needs %s on %s %s: have it granted (kafka-acls.sh --add --allow-principal User:… --operation %s --%s %s)",
			e.op, e.resource, e.name, e.op, e.resource, e.name)
	case errors.Is(e.err, kerr.ClusterAuthorizationFailed):
		return fmt.Sprintf("not authorized: the user needs %s on the cluster: have it granted (kafka-acls.sh --add --allow-principal User:… --operation %s --cluster)", e.op, e.op)
	}
	return fmt.Sprintf("%s %s: %v", e.resource, e.name, e.err)
}

func (e *accessError) Unwrap() error { return e.err }
