package watch

// The state of a topic for scripts: an object for each change.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// lines writes an object whenever the topic changes. That time passes is no change by itself.
type lines struct {
	*cli.Tool
	last []byte
}

func (l *lines) show(v *view, silent time.Time, _, _ int64) error {
	now := l.Now()
	if v.looked.IsZero() && v.problem == nil && silent.IsZero() {
		return nil // 0 would be a guess
	}
	fields, err := fieldsOf(v, now, silent)
	if err != nil {
		return err
	}
	is, err := output.JSONObject(fields...)
	if err != nil || bytes.Equal(is, l.last) {
		return err
	}
	l.last = is
	line, err := output.JSONObject(append([]output.Field{
		output.NewField("at", "", now), output.NewField("recent", "", v.recent),
	}, fields...)...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.Screen.Data(), "%s\n", line)
	return err
}

func (l *lines) end() error { return nil }

// fieldsOf returns the topic in JSON, without what changes as time passes.
func fieldsOf(v *view, now, silent time.Time) ([]output.Field, error) {
	field := output.NewField
	run, err := runObject(v.run)
	return []output.Field{
		field("topic", "", v.topic), field("state", "", string(v.state(v.asOf(now, silent)))),
		field("open", "", v.open), field("pending", "", v.pending), field("resolved", "", v.resolved), field("duplicates", "", v.duplicates),
		field("oldest", "", v.oldest), field("newest", "", v.newest),
		field("groups", "", output.RowsOf(v.groups, func(g group) []output.Field {
			return []output.Field{
				field("class", "", output.OrNil(g.class)), field("fingerprint", "", output.OrNil(g.fingerprint)), field("open", "", g.open),
				field("sample", "", output.OrNil(g.sample.message)), field("samplePlace", "", fmt.Sprintf("%d:%d", g.sample.partition, g.sample.offset)),
				field("first", "", g.first), field("last", "", g.last), field("versions", "", g.versions),
				field("new", "", g.isNew), field("failedAgain", "", g.failedAgain),
			}
		})),
		field("guards", "", guardRows(v)), field("run", "", run), field("problem", "", problemOf(v.problem, silent)),
	}, err
}

func guardRows(v *view) (rows output.Rows) {
	field := output.NewField
	rows = output.Rows{}
	for i := range v.guards {
		g := &v.guards[i]
		is := "strained"
		if g.Held {
			is = "held"
		}
		rows = append(rows, []output.Field{
			field("group", "", g.Group), field("state", "", is), field("since", "", g.Since), field("class", "", g.Class),
			field("partitions", "", g.Partitions), field("of", "", g.Of),
		})
	}
	return rows
}

// runObject is a run, without its heartbeat.
func runObject(o *redrive.Outcome) (any, error) {
	if o == nil {
		return nil, nil
	}
	field, c := output.NewField, &o.Counts
	text, err := output.JSONObject(
		field("run", "", o.Topic+"/"+o.ID), field("state", "", string(o.State)), field("waiting", "", output.OrNil(o.Waiting)), field("cause", "", output.OrNil(o.Cause)),
		field("by", "", o.By), field("why", "", output.OrNil(o.Why)), field("started", "", o.Started), field("stopped", "", o.Stopped), field("ended", "", o.Ended),
		field("selected", "", c.Selected), field("sent", "", c.Sent), field("succeeded", "", c.Succeeded), field("failed", "", c.Failed), field("retrying", "", c.Retrying), field("pending", "", c.Pending),
	)
	return json.RawMessage(text), err
}

func problemOf(problem error, silent time.Time) any {
	switch {
	case problem != nil:
		return cli.WithoutGuess(problem.Error())
	case !silent.IsZero():
		return "the brokers do not answer"
	}
	return nil
}
