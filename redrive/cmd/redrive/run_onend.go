package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/onend"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// endFlags say what follows the end of a run.
type endFlags struct {
	noWait bool
	onEnd  string
}

func addEnd(cmd *cobra.Command) *endFlags {
	f := &endFlags{}
	section(cmd, sectionEnd, func(set *pflag.FlagSet) {
		set.BoolVar(&f.noWait, "no-wait", false, "exit with code 0 instead of 5 if no letter failed again and some have no outcome yet")
		set.StringVar(&f.onEnd, "on-end", "", "`command` of the shell or URL that is told when the run is done, aborted or stopped: JSON on stdin or by POST")
	})
	return f
}

// compile reads the flags.
func (f *endFlags) compile() (ending, error) {
	e := ending{noWait: f.noWait}
	if f.onEnd == "" {
		return e, nil
	}
	var err error
	if e.target, err = onend.Parse(f.onEnd); err != nil {
		err = fmt.Errorf("--on-end: %w", err)
	}
	return e, err
}

// An ending is what follows the end of a run.
type ending struct {
	noWait bool
	target onend.Target // is told of the end; the zero target is nobody
}

// resultOf is how a run ended for this process.
func resultOf(o redrive.Outcome, err error) string {
	switch {
	case o.State.Finished():
		return string(o.State)
	case errors.Is(err, redrive.ErrTaken):
		return "taken"
	}
	return "stopped"
}

// tell tells the target how a run ended, once the verb has printed everything. The verb's exit code
// stays.
func (e ending) tell(t *tool, o redrive.Outcome, err error) {
	target := e.target
	if target.IsZero() {
		return
	}
	t.atEnd = func(ctx context.Context, code int) {
		if ctx.Err() != nil { // a run that was stopped is told of, too
			ctx = context.WithoutCancel(ctx)
		}
		var message any
		if err != nil {
			message = err.Error()
		}
		result := resultOf(o, err)
		body, failed := output.JSONObject(append(outcomeFields(t, o),
			output.NewField("result", "", result),
			output.NewField("exitCode", "", code),
			output.NewField("message", "", message),
		)...)
		if failed == nil {
			t.screen.Status("telling %s of --on-end …", target)
			failed = target.Call(ctx, onend.Call{Body: body, Env: onEndEnv(o, result, code), Secrets: t.secrets, Words: t.screen.Words()})
			t.screen.Status("")
		}
		if failed != nil {
			t.screen.Warn("--on-end: %s was not told of the run's end: %v", target, failed)
		}
	}
}

// longestVariable is how much of a text a variable has. Systems bound a process's variables.
const longestVariable = 4 << 10

// onEndEnv is a run's end as variables. Text from anywhere has no control characters there.
func onEndEnv(o redrive.Outcome, result string, code int) (env []string) {
	add := func(name string, value any) {
		text := output.Escape(fmt.Sprint(value))
		env = append(env, "REDRIVE_"+name+"="+strings.ToValidUTF8(text[:min(len(text), longestVariable)], ""))
	}
	c := o.Counts
	add("RUN", o.Topic+"/"+o.ID)
	add("TOPIC", o.Topic)
	add("RESULT", result)
	add("EXIT_CODE", code)
	add("CAUSE", o.Cause)
	add("BY", o.By)
	add("WHY", o.Why)
	add("SELECTED", c.Selected)
	add("SENT", c.Sent)
	add("SUCCEEDED", c.Succeeded)
	add("FAILED", c.Failed)
	add("PENDING", c.Pending)
	return env
}
