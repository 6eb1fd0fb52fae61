package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// An Operator is the user's name and reason, for the ledger.
type Operator struct{ By, Why string }

// AddBy gives a verb the flag for the operator's name.
func AddBy(t *Tool, set *pflag.FlagSet) *Operator {
	o := &Operator{}
	set.StringVar(&o.By, "by", t.User, "`name` of the operator, for the ledger")
	return o
}

// AddOperator gives a verb the flags for the operator's name and reason.
func AddOperator(t *Tool, set *pflag.FlagSet) *Operator {
	o := AddBy(t, set)
	set.StringVar(&o.Why, "why", "", "`reason`, for the ledger: a ticket, what was fixed")
	return o
}

// Reasoned is an error where the reason is missing: a decision without one can't be judged later.
func (o *Operator) Reasoned() error {
	if o.Why == "" {
		return errors.New("--why is missing: the ledger records the reason")
	}
	return nil
}

// Check is an error where the name is missing.
func (o *Operator) Check() error {
	if o.By == "" {
		return errors.New("--by is missing: the ledger records the operator")
	}
	return nil
}
