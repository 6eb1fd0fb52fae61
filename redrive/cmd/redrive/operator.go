package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// An operator is the user's name and reason, for the ledger.
type operator struct{ by, why string }

// addBy gives a verb the flag for the operator's name.
func addBy(t *tool, set *pflag.FlagSet) *operator {
	o := &operator{}
	set.StringVar(&o.by, "by", t.user, "`name` of the operator, for the ledger")
	return o
}

// addOperator gives a verb the flags for the operator's name and reason.
func addOperator(t *tool, set *pflag.FlagSet) *operator {
	o := addBy(t, set)
	set.StringVar(&o.why, "why", "", "`reason`, for the ledger: a ticket, what was fixed")
	return o
}

// reasoned is an error where the reason is missing: a decision without one can't be judged later.
func (o *operator) reasoned() error {
	if o.why == "" {
		return errors.New("--why is missing: the ledger records the reason")
	}
	return nil
}

func (o *operator) check() error {
	if o.by == "" {
		return errors.New("--by is missing: the ledger records the operator")
	}
	return nil
}
