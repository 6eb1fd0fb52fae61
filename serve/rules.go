package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// Rule redrives letters by itself: see docs/serve.md. The file of rules has a list of them.
type Rule struct {
	// Name is written to ledgers, as who redrove the letters: "rule <name>".
	Name string `yaml:"name"`
	// Topics is a pattern of dead-letter topics' names. The first rule that fits a letter counts.
	Topics string `yaml:"topics"`
	// Classes and Groups select letters, as in dlq.Filter. Classes are required: a rule that redrives
	// whatever fails would redrive bugs.
	Classes []string `yaml:"classes"`
	Groups  []string `yaml:"groups"`
	// CoolDown is how long no letter of the classes must have failed. Default 15 m.
	CoolDown time.Duration `yaml:"cool-down"`
	// Times are parts of the week in which the rule may begin a run, as in "Mon-Fri 08:00-18:00".
	// Default any. Zone is their time zone; default UTC.
	Times []string `yaml:"times"`
	Zone  string   `yaml:"zone"`
	// Rate is in records a second, Window how long a run watches after its last letter, and
	// MaxReplays how often one record may be redriven. Defaults 50, 5 m, 3.
	Rate       float64       `yaml:"rate"`
	Window     time.Duration `yaml:"window"`
	MaxReplays int           `yaml:"max-replays"`
	// Wait is how long the rule rests after a run that aborted. Each further one doubles it, up to
	// MaxWait. Defaults 30 m and 24 h.
	Wait    time.Duration `yaml:"wait"`
	MaxWait time.Duration `yaml:"max-wait"`

	decides rule.Rule
	zone    *time.Location
}

func (r *Rule) withDefaults() {
	or := func(d *time.Duration, by time.Duration) {
		if *d == 0 {
			*d = by
		}
	}
	or(&r.CoolDown, 15*time.Minute)
	or(&r.Window, 5*time.Minute)
	or(&r.Wait, 30*time.Minute)
	or(&r.MaxWait, 24*time.Hour)
	if r.Rate == 0 {
		r.Rate = 50
	}
	if r.MaxReplays == 0 {
		r.MaxReplays = 3
	}
}

// check completes a rule and returns what is wrong with it.
func (r *Rule) check(wrong func(key, format string, args ...any)) {
	if r.Name == "" {
		wrong("name", "required: it is written to ledgers")
	}
	if _, err := path.Match(r.Topics, ""); r.Topics == "" || err != nil {
		wrong("topics", "%q is not a pattern: * is any text, ? any character, [abc] one of these", r.Topics)
	}
	if len(r.Classes) == 0 {
		wrong("classes", "required: a rule for all classes would redrive bugs")
	}
	for _, d := range []struct {
		key string
		is  time.Duration
	}{{"cool-down", r.CoolDown}, {"window", r.Window}, {"wait", r.Wait}, {"max-wait", r.MaxWait - r.Wait}} {
		if d.is < 0 {
			wrong(d.key, "too short")
		}
	}
	if r.Rate < 0 || r.MaxReplays < 0 {
		wrong("rate", "rate and max-replays are above 0")
	}
	zone, err := time.LoadLocation(r.Zone)
	if r.zone = zone; err != nil {
		wrong("zone", "%q is no time zone: as in Europe/Berlin", r.Zone)
	}
	r.decides = rule.Rule{Name: r.Name, CoolDown: r.CoolDown, Wait: r.Wait, MaxWait: r.MaxWait}
	for i, text := range r.Times {
		t, err := rule.ParseTimes(text)
		if err != nil {
			wrong(fmt.Sprintf("times[%d]", i), "%v", err)
		}
		r.decides.Times = append(r.decides.Times, t)
	}
}

// parseRules reads a file of rules. name is for errors.
func parseRules(name string, text []byte) ([]Rule, error) {
	var content struct {
		Rules []Rule `yaml:"rules"`
	}
	if err := yaml.UnmarshalWithOptions(text, &content, yaml.Strict(), yaml.CustomUnmarshaler(readDuration)); err != nil {
		return nil, inFile(name, text, err)
	}
	var all []error
	names := map[string]bool{}
	for i := range content.Rules {
		r := &content.Rules[i]
		r.withDefaults()
		wrong := func(key, format string, args ...any) {
			all = append(all, &KeyError{Key: fmt.Sprintf("rules[%d].%s", i, key), Problem: fmt.Sprintf(format, args...)})
		}
		r.check(wrong)
		if names[r.Name] {
			wrong("name", "%q: another rule has this name", r.Name)
		}
		names[r.Name] = true
	}
	if len(all) > 0 {
		return nil, atLines(name, text, errors.Join(all...))
	}
	return content.Rules, nil
}

// ruleFile are rules that are read again when their file changes.
type ruleFile struct {
	name string
	log  *slog.Logger

	mu      sync.Mutex
	rules   []Rule
	changed time.Time
	size    int64
}

func readRules(name string, log *slog.Logger) (*ruleFile, error) {
	f := &ruleFile{name: name, log: log}
	return f, f.read()
}

func (f *ruleFile) read() error {
	info, err := os.Stat(f.name)
	if err != nil {
		return err
	}
	if info.ModTime().Equal(f.changed) && info.Size() == f.size {
		return nil
	}
	text, err := os.ReadFile(f.name)
	if err != nil {
		return err
	}
	f.changed, f.size = info.ModTime(), info.Size() // a broken file is told once
	rules, err := parseRules(f.name, text)
	if err != nil {
		return err
	}
	f.rules = rules
	return nil
}

// get returns the rules. A file that became broken is logged, and the rules before count.
func (f *ruleFile) get() []Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(); err != nil {
		f.log.Error("siding: the rules cannot be read; those before count", "error", err)
	}
	return f.rules
}

// decision is what a rule decided about a topic, as the ledger keeps it.
type decision struct {
	V   int       `json:"v"`
	At  time.Time `json:"at"`
	Do  string    `json:"do"` // "redrive" or "canary"
	Why string    `json:"why"`
	Run string    `json:"run,omitempty"`
	// End is how the run ended; empty while it goes on.
	End string `json:"end,omitempty"`
}

func ruleStateNote(name string) string    { return "rule/" + name }
func ruleDecisionNote(name string) string { return "rule/" + name + "/decision" }

// ruleState reads the state of a rule on a topic from its ledger.
func (t *topic) ruleState(name string) (s rule.State, err error) {
	note := t.book.Noted(ruleStateNote(name))
	if note == nil {
		return s, nil
	}
	if err := json.Unmarshal(note, &s); err != nil {
		return s, fmt.Errorf("the state of rule %q in %s cannot be read: %w", name, t.Ledger, err)
	}
	return s, nil
}

// applyRule begins a run if a rule wants one, and returns when it has ended.
func (s *Server) applyRule(ctx context.Context, t *topic, r *Rule, note func(name string, value any) error) error {
	now := time.Now()
	state, err := t.ruleState(r.Name)
	if err != nil {
		return err // what nobody can read is no permission
	}
	filter := dlq.Filter{Classes: r.Classes, Groups: r.Groups}
	facts := rule.Facts{Open: t.book.Select(&filter).Open, LastFailed: t.book.LastFailed(&dlq.Filter{Classes: r.Classes}), Unfinished: t.unfinished(), Manual: t.config.ManualOnly}
	do, why := r.decides.Decide(now.In(r.zone), &state, facts)
	if do == rule.Nothing {
		return nil
	}
	d := decision{V: 1, At: now, Do: "redrive", Why: why}
	selection := redrive.Selection{Topic: t.DeadLetterTopic.Topic, Filter: filter, MaxRedrives: r.MaxReplays}
	if do == rule.Canary {
		d.Do = "canary"
		rows, _, _ := t.book.Page(&filter, false, dlq.Cursor{}, 1)
		if len(rows) == 0 {
			return nil
		}
		selection.Filter.Ranges = []dlq.Range{dlq.At(rows[0].Partition, rows[0].Offset)}
	}
	plan, err := s.redriver.Plan(ctx, selection)
	if err != nil {
		return err
	}
	d.Run = plan.ID
	if err := note(ruleDecisionNote(r.Name), d); err != nil {
		return err // what is not in the ledger is not done
	}
	_, err = s.redriver.Run(ctx, plan, redrive.RunOptions{By: "rule " + r.Name, Why: why, Pace: redrive.Pace{Rate: r.Rate, Window: r.Window}})
	if ctx.Err() != nil {
		return nil // another server goes on with the run
	}
	var failed *redrive.FailedAgainError
	cause := ""
	switch {
	case errors.As(err, &failed):
		cause = failed.Cause
	case err != nil:
		return err
	}
	d.End = "done"
	if cause != "" {
		d.End = "aborted: " + cause
	}
	err = errors.Join(note(ruleStateNote(r.Name), r.decides.Ended(time.Now(), state, cause)), note(ruleDecisionNote(r.Name), d))
	// The next decision is made with these notes, and with the outcomes of the run.
	return errors.Join(err, t.book.Refresh(ctx))
}

// applyRules applies the rules to the topics that the server owns, one at a time to each topic.
func (s *Server) applyRules(ctx context.Context, running *sync.WaitGroup, writer *kgo.Client) {
	if s.rules == nil {
		return
	}
	rules := s.rules.get()
	for _, t := range s.owned() {
		if t.book.Progress().Complete.IsZero() || !t.ruled.CompareAndSwap(false, true) {
			continue
		}
		running.Go(func() {
			defer t.ruled.Store(false)
			note := func(name string, value any) error {
				text, err := json.Marshal(value)
				if err == nil {
					ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
					defer cancel()
					err = writer.ProduceSync(ctx, t.book.Note(name, text)).FirstErr()
				}
				return err
			}
			for i := range rules {
				if fits, _ := path.Match(rules[i].Topics, t.DeadLetterTopic.Topic); !fits {
					continue
				}
				if err := s.applyRule(ctx, t, &rules[i], note); err != nil && ctx.Err() == nil {
					s.log.Warn("siding: a rule could not be applied", "rule", rules[i].Name, "topic", t.DeadLetterTopic.Topic, "error", err)
				}
			}
		})
	}
}

// unfinished returns the run of the topic that is not finished; empty if there is none.
func (t *topic) unfinished() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.runs {
		if !t.runs[i].State.Finished() {
			return t.runs[i].ID
		}
	}
	return ""
}
