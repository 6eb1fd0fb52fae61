package main

import (
	"errors"
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/edit"
)

// operator is who does something that is kept, and why.
type operator struct{ by, why string }

func addOperator(set *pflag.FlagSet) *operator {
	o := &operator{}
	set.StringVar(&o.by, "by", "", "`name` that is kept as who did it; the user of this machine by default")
	set.StringVar(&o.why, "why", "", "`text` that is kept as the reason: a ticket, what was fixed")
	return o
}

func (o *operator) who() string {
	if o.by != "" {
		return o.by
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

// redriver is the engine, on this session's cluster.
func (s *session) redriver(o *operator) (*redrive.Redriver, error) {
	return redrive.New(redrive.Config{Kafka: s.opts, Naming: s.Naming, By: o.who(), Why: o.why, MergePatch: edit.MergePatch})
}

// parseRun reads topic/id, as run and runs print it.
func parseRun(s string) (topic, id string, err error) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 || i == len(s)-1 {
		return "", "", fmt.Errorf("%q is no run: runs TOPIC prints them, as orders.dlq/20260102-150405-a1b2c3", s)
	}
	return s[:i], s[i+1:], nil
}

// engineFailed is an error of the engine, in the command's terms.
func engineFailed(topic string, err error) error {
	if isA[*redrive.RefusedError](err) || isA[*redrive.ReappearedError](err) || errors.Is(err, redrive.ErrTaken) {
		return err
	}
	return onTopic("READ", topic, err)
}
