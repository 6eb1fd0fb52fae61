package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/mergepatch"
	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// PlanRun returns what a run would do. It changes nothing but what is known of earlier runs.
func PlanRun(ctx context.Context, d *Desk, who *access.Identity, in *request.Plan) (api.Plan, error) {
	if _, err := reasonOf(in.Body.Why, false); err != nil {
		return api.Plan{}, err // the run would be refused
	}
	t, sel, err := chooseOpen(ctx, d, who, in.Topic.Topic, &in.Body.Filter)
	if err != nil {
		return api.Plan{}, err
	}
	p, err := plan(ctx, d, who, t, sel, &in.Body.RunOptions)
	if err != nil {
		return api.Plan{}, err
	}
	is := api.Plan{
		Topic: in.Topic.Topic, Letters: p.Letters, ByClass: p.ByClass, ByGroup: p.ByGroup, ByPartition: map[string]int64{}, Targets: p.Targets, SeenBy: Listed(p.SeenBy),
		Watched: Listed(p.Watched), Skipped: p.Skipped, Warnings: Listed(p.Warnings), SendingMs: p.Duration(paceOf(&in.Body.Pace)).Milliseconds(),
	}
	for partition, n := range p.ByPartition {
		is.ByPartition[fmt.Sprint(partition)] = n
	}
	if text := sel.Problem(); text != "" {
		is.Warnings = append(is.Warnings, text)
	}
	if err := t.Forgetful(); err != nil {
		is.Warnings = append(is.Warnings, err.Error())
	}
	for i := range is.Warnings {
		is.Warnings[i] = failure.Outside(d.cfg.Redact, is.Warnings[i])
	}
	return is, nil
}

// Listed returns an empty list in place of none.
func Listed[T any](all []T) []T { return append([]T{}, all...) }

// plan plans a run, after the outcomes of earlier ones were recorded.
func plan(ctx context.Context, d *Desk, who *access.Identity, t *watch.Topic, sel *selection.Selection, o *api.RunOptions) (*redrive.Plan, error) {
	if err := t.HasLedger(); err != nil {
		return nil, failure.ProblemOf(err)
	}
	edit, err := editOf(&o.Edit)
	if err != nil {
		return nil, err
	}
	if most := headers.MaxRedriveAttempts; o.MaxAttempts > most {
		return nil, failure.NewProblem(api.InvalidRequest, "maxAttempts is %d: at most %d, or none for the bound of the consumer's policy", o.MaxAttempts, most)
	}
	if err := errors.Join(mayTarget(who, t, o), keepsHidden(d, t, o)); err != nil {
		return nil, err
	}
	return Attend(ctx, d, t, func(ctx context.Context) (*redrive.Plan, error) {
		d.Outcomes.Record(ctx, t.DeadLetterTopic.Topic)
		return d.cfg.Redriver.Plan(ctx, redrive.Selection{
			Topic: t.DeadLetterTopic.Topic, Filter: sel.Whole(), Edit: edit, MaxRedrives: o.MaxRedrives, MaxAttempts: o.MaxAttempts,
			Target: redrive.Target{Topic: o.Target.Topic, Wait: o.Target.Wait, Force: o.Target.Force, KeepTimestamp: o.Target.KeepTimestamp},
		})
	})
}

// mayTarget refuses a run to a topic that the sender chose, unless they are an administrator: the
// server may write to topics on which they have no role.
func mayTarget(who *access.Identity, t *watch.Topic, o *api.RunOptions) error {
	if to, name := o.Target.Topic, t.DeadLetterTopic.Topic; to != "" && to != t.Source && who.On(name) < access.Admin {
		return failure.NewProblem(api.NoRole, "to send letters of %s to %s takes the role %s on %s: leave the target out, or name the source, %s", name, to, access.Admin, name, t.Source)
	}
	return nil
}

// keepsHidden refuses a run that would show what the server hides. A copy is the whole record. So
// it may go where the record came from, and to no topic that the sender chose. A mark in a new
// value or header was copied from what the server shows, and would replace what it stands for.
func keepsHidden(d *Desk, t *watch.Topic, o *api.RunOptions) error {
	if d.cfg.Redact == nil {
		return nil
	}
	if to := o.Target.Topic; to != "" && to != t.Source {
		return failure.NewProblem(api.Redacted, "this server hides parts of letters, and a copy on %s would show them: leave the target out, or name the source, %s", to, t.Source)
	}
	marked := bytes.Contains(o.Edit.Patch, []byte(redact.Mark)) || o.Edit.Value != nil && bytes.Contains(bytesFrom(o.Edit.Value), []byte(redact.Mark))
	for _, h := range o.Edit.SetHeaders {
		marked = marked || bytes.Contains(bytesFrom(&h.Value), []byte(redact.Mark))
	}
	if marked {
		return failure.NewProblem(api.BadEdit, "a new value has %s, which stands for what this server hides: it would replace that; change other parts by a patch", redact.Mark)
	}
	return nil
}

// paceOf returns a pace as package redrive takes it.
func paceOf(p *api.Pace) redrive.Pace {
	return redrive.Pace{
		Rate: p.Rate, Burst: p.Burst, Canary: p.Canary, Tolerate: p.Tolerate, TolerateShare: p.TolerateShare,
		Ramp: milliseconds(p.RampMs), Window: milliseconds(p.WindowMs), MaxLag: p.MaxLag,
	}
}

// milliseconds returns a duration of a request. More than a hundred years count as these: times
// after that can still be written.
func milliseconds(ms int64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	return time.Duration(min(max(ms, -1), most.Milliseconds())) * time.Millisecond
}

// mostEdit bounds what an edit sets, in bytes: a run keeps it in one record of the ledger, in
// base64, which every broker must accept.
const mostEdit = 512 << 10

// editOf returns an edit as package redrive takes it.
func editOf(e *api.Edit) (redrive.Edit, error) {
	var is redrive.Edit
	var wrong []string
	named := map[string]bool{}
	name := func(key string) {
		switch {
		case key == "":
			wrong = append(wrong, "a header has no name")
		case headers.Reserved(key):
			wrong = append(wrong, fmt.Sprintf("header %s is siding's own", key))
		case named[key]:
			wrong = append(wrong, fmt.Sprintf("header %s is set or unset twice", key))
		}
		named[key] = true
	}
	for _, h := range e.SetHeaders {
		name(h.Key)
		is.Set = append(is.Set, kgo.RecordHeader{Key: h.Key, Value: bytesFrom(&h.Value)})
	}
	for _, key := range e.UnsetHeaders {
		name(key)
		is.Unset = append(is.Unset, key)
	}
	if len(e.Patch) > 0 {
		if err := mergepatch.CheckObject(e.Patch); err != nil {
			wrong = append(wrong, "patch "+err.Error())
		}
		is.Patch = e.Patch
	}
	if e.Value != nil {
		if is.Patch != nil {
			wrong = append(wrong, "patch and value are both given: a patch changes the value, and a value replaces it")
		}
		is.Value = bytesFrom(e.Value)
	}
	size := len(is.Patch) + len(is.Value)
	for _, h := range is.Set {
		size += len(h.Key) + len(h.Value)
	}
	if size > mostEdit {
		wrong = append(wrong, fmt.Sprintf("what is set has %d bytes: a run can keep %d; send the record by other means, and discard the letter", size, mostEdit))
	}
	if len(wrong) > 0 {
		return is, failure.NewProblem(api.BadEdit, "%s", strings.Join(wrong, "; "))
	}
	return is, nil
}

// bytesFrom returns bytes that are never nil.
func bytesFrom(b *api.NewBytes) []byte {
	if b.Base64 != nil {
		return b.Base64
	}
	return []byte(b.Text)
}
