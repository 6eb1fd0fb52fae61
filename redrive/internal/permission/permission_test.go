package permission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// An error names the permission that is missing, once, and any other error stays as it is.
func TestDenied_NamesThePermission(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operation, resource string
		err                 error
		want                string // the resource that is named; empty if the error stays
	}{
		{"READ", "topic", kerr.TopicAuthorizationFailed, "topic"},
		{"DESCRIBE", "group", fmt.Errorf("fetch: %w", kerr.GroupAuthorizationFailed), "group"},
		{"WRITE", "transactional-id", kerr.TransactionalIDAuthorizationFailed, "transactional-id"},
		{"DESCRIBE", "topic", kerr.ClusterAuthorizationFailed, "cluster"},
		// an idempotent producer that may write nowhere
		{"WRITE", "topic", kerr.ClusterAuthorizationFailed, "topic"},
		{"READ", "topic", kerr.NotLeaderForPartition, ""},
		{"READ", "topic", &DeniedError{Operation: "WRITE", Resource: "topic", Name: "other", Err: kerr.TopicAuthorizationFailed}, ""},
		{"READ", "topic", nil, ""},
	} {
		got := Denied(c.operation, c.resource, "orders", c.err)
		if d, ok := got.(*DeniedError); c.want != "" && (!ok || d.Resource != c.want || d.Operation != c.operation || !errors.Is(got, c.err)) { //nolint:errorlint // it is made here
			t.Errorf("%v becomes %v, want one about a %s", c.err, got, c.want)
		}
		if c.want == "" && got != c.err { //nolint:errorlint // the very same
			t.Errorf("%v becomes %v", c.err, got)
		}
	}
}

// An operator has all permissions granted at once, so each is named, and none twice.
func TestLacking_NamesEachPermissionOnce(t *testing.T) {
	t.Parallel()
	read := Denied("READ", "topic", "orders", kerr.TopicAuthorizationFailed)
	write := Denied("WRITE", "topic", "orders", kerr.TopicAuthorizationFailed)
	err := Lacking(fmt.Errorf("first: %w", read), nil, errors.New("other"), errors.Join(write, fmt.Errorf("again: %w", read)))
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "needs READ on topic orders") || !strings.Contains(err.Error(), "needs WRITE on topic orders") {
		t.Errorf("the permissions are named so: %v", err)
	}
	if err := Lacking(errors.New("other"), nil); err != nil {
		t.Errorf("no permission is missing, and the error is %v", err)
	}
}
