package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/edit"
)

// operator is who does something that the ledger keeps, and why.
type operator struct{ by, why string }

// addBy gives a verb the flag that says who does it.
func (t *tool) addBy(set *pflag.FlagSet) *operator {
	o := &operator{}
	set.StringVar(&o.by, "by", t.user, "`name` of the operator, for the ledger")
	return o
}

// addOperator gives a verb the flags that say who does it, and why.
func (t *tool) addOperator(set *pflag.FlagSet) *operator {
	o := t.addBy(set)
	set.StringVar(&o.why, "why", "", "`reason`, for the ledger: a ticket, what was fixed")
	return o
}

func (o *operator) check() error {
	if o.by == "" {
		return errors.New("--by is missing: the ledger records the operator")
	}
	return nil
}

// redriver is the engine, on this session's cluster.
func (s *session) redriver(o *operator) (*redrive.Redriver, error) {
	r, err := redrive.New(redrive.Config{Kafka: s.opts, Naming: s.Naming, By: o.by, Why: o.why, MergePatch: edit.MergePatch, Logger: s.log})
	return r, usage(err)
}

// reader is an engine for those who write nothing, whose name nobody gets to see.
func (s *session) reader() (*redrive.Redriver, error) { return s.redriver(&operator{by: "nobody"}) }

// parseRun reads topic/id, as run and runs print it.
func parseRun(s string) (topic, id string, err error) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 || i == len(s)-1 {
		return "", "", fmt.Errorf("%q is not a run such as orders.dlq/20260102-150405-a1b2c3: redrive runs TOPIC lists them", s)
	}
	return s[:i], s[i+1:], nil
}

// remedy is what the command line has for a refusal.
func (t *tool) remedy(err error) string {
	r, ok := errors.AsType[*redrive.RefusedError](err)
	if !ok {
		return ""
	}
	switch r.Reason {
	case redrive.RefusedUnfinished:
		run := r.Topic + "/" + r.Run.ID
		if _, yes := t.goesOn(*r.Run); yes { // nobody is asked to end what may be a colleague's
			return fmt.Sprintf("redrive status %s shows how far it is", run)
		}
		return fmt.Sprintf("redrive resume %s continues it, redrive abort %s ends it", run, run)
	case redrive.RefusedNothing:
		hint := fmt.Sprintf("redrive summary %s shows what is open", r.Topic)
		if strings.Contains(r.Detail, "name a target topic") {
			hint += "; --target accepts letters that name no group"
		}
		return hint
	case redrive.RefusedEdit:
		return fmt.Sprintf("redrive show %s P:OFFSET shows a letter's value; choose the letters that it fits by --class or --where", r.Topic)
	case redrive.RefusedNoTier:
		return "--target names another topic"
	case redrive.RefusedNoMembers:
		return "--wait waits until they are there"
	case redrive.RefusedCompacted:
		return "--force redrives them all the same"
	case redrive.RefusedNaming:
		return "--retry-name sets how retry topics are named, --force redrives the letters all the same"
	case redrive.RefusedTooOften:
		return "--max-redrives raises the limit, redrive discard discards the letters"
	case redrive.RefusedRetention:
		return "omit --keep-timestamp, or choose younger letters by --since"
	case redrive.RefusedPartitions, redrive.RefusedTarget:
		return "--target names another topic"
	case redrive.RefusedMany:
		return fmt.Sprintf("--offset P:OFFSET chooses one, as redrive list %s prints them", r.Topic)
	}
	return ""
}
