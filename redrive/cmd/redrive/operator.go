package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// operator is who does something that the ledger keeps, and why.
type operator struct{ by, why string }

// addBy gives a verb the flag that says who does it.
func addBy(t *tool, set *pflag.FlagSet) *operator {
	o := &operator{}
	set.StringVar(&o.by, "by", t.user, "`name` of the operator, for the ledger")
	return o
}

// addOperator gives a verb the flags that say who does it, and why.
func addOperator(t *tool, set *pflag.FlagSet) *operator {
	o := addBy(t, set)
	set.StringVar(&o.why, "why", "", "`reason`, for the ledger: a ticket, what was fixed")
	return o
}

func (o *operator) check() error {
	if o.by == "" {
		return errors.New("--by is missing: the ledger records the operator")
	}
	return nil
}

// parseRun reads topic/id, as run and runs print it.
func parseRun(s string) (topic, id string, err error) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 || i == len(s)-1 {
		return "", "", fmt.Errorf("%q is not a run such as orders.dlq/20260102-150405-a1b2c3: redrive runs TOPIC lists them", s)
	}
	return s[:i], s[i+1:], nil
}
