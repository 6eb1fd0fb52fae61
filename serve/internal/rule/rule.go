package rule

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/duration"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// Rule redrives letters by itself: see docs/serve.md. The file of rules has a list of them.
type Rule struct {
	// Name is written to ledgers, as who redrove the letters: rule NAME. Required, and no other
	// rule has it.
	Name string `yaml:"name"`
	// Topics is a pattern of dead-letter topics' names: * is any text, ? any character, [abc] one
	// of these. The first rule that fits a letter counts. Required.
	Topics string `yaml:"topics"`
	// Filter selects letters as a request does, with a key for each of its parts, but for state,
	// partition and offset. Classes are required.
	Filter api.Filter `yaml:",inline"`
	// CoolDown is how long no letter of the classes must have failed. Default 15m.
	CoolDown time.Duration `yaml:"cool-down"`
	// Delay is how long a letter has been in its topic at least before the rule redrives it, by the
	// time of the brokers. Without a cool-down of its own the rule has none then. Default 0.
	Delay time.Duration `yaml:"delay"`
	// Times are parts of the week in which the rule may begin a run, as in Mon-Fri 08:00-18:00,
	// Sat,Sun or 22:00-04:00. Default any time.
	Times []string `yaml:"times"`
	// Zone is the time zone of times, as in Europe/Berlin. Default UTC.
	Zone string `yaml:"zone"`
	// Rate is how many records a second a run sends at most. Default 50.
	Rate float64 `yaml:"rate"`
	// Window is how long a run watches for failures after its last letter. Default 5m.
	Window time.Duration `yaml:"window"`
	// MaxReplays is how often one record may be redriven. Default 3.
	MaxReplays int `yaml:"max-replays"`
	// Wait is how long the rule rests after a run that aborted. Each further one doubles it.
	// Default 30m.
	Wait time.Duration `yaml:"wait"`
	// MaxWait bounds wait, however many runs aborted. Default 24h.
	MaxWait time.Duration `yaml:"max-wait"`

	schedule Schedule
	selects  dlq.Filter // what an index decides of Filter
	zone     *time.Location
	before   []Rule // that stand before it in the file
}

// Decide returns what the rule does now, and why.
func (r *Rule) Decide(now time.Time, s *State, f Facts) (do Action, why string) {
	return r.schedule.Decide(now.In(r.zone), s, f)
}

// Ended returns the state after a run of the rule: cause is why it aborted, or empty if it did not.
func (r *Rule) Ended(now time.Time, s State, cause string) State {
	return r.schedule.Ended(now, s, cause)
}

// ZoneName returns the time zone of times.
func (r *Rule) ZoneName() string { return r.zone.String() }

// Dialects are those of letters that rules bring back: siding's own, and those of no known dialect.
var Dialects = []string{""}

// Selects returns what selects the rule's letters of a topic, as far as an index knows: those that
// no rule before it fits, whatever that one does about them, and whose delay is over.
func (r *Rule) Selects(topic string, now time.Time) dlq.Filter {
	f := r.selects
	if over := now.Add(-r.Delay); r.Delay > 0 && (f.EnteredUntil.IsZero() || over.Before(f.EnteredUntil)) {
		f.EnteredUntil = over
	}
	var others []dlq.Filter
	for b := range r.Earlier(topic) {
		if b.isByKind() {
			others = append(others, b.selects)
		}
	}
	if len(others) > 0 {
		f.Match = func(l *dlq.Letter) bool { return !selectedBy(others, l) }
	}
	return f
}

// Earlier yields the rules for a topic that stand before the rule.
func (r *Rule) Earlier(topic string) iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		for i := range r.before {
			if b := &r.before[i]; b.Covers(topic) && !yield(b) {
				return
			}
		}
	}
}

// isByKind reports whether an index's kinds of letters say which of them the rule selects.
func (r *Rule) isByKind() bool {
	f := &r.selects
	return !selection.ReadsLetters(&r.Filter) && f.Since.IsZero() && f.Until.IsZero() && f.EnteredSince.IsZero() && f.EnteredUntil.IsZero()
}

// Reads reports whether letters of a topic have to be read to know which of them the rule selects,
// or a rule before it.
func (r *Rule) Reads(topic string) bool {
	for b := range r.Earlier(topic) {
		if !b.isByKind() {
			return true
		}
	}
	return selection.ReadsLetters(&r.Filter)
}

// Fits returns what decides about letters that were read, for one goroutine, and what it says of
// those about which it cannot: they do not fit. A filter sees no more of a letter than people do.
func (r *Rule) Fits(topic string, view selection.View) (fits func(*dlq.Letter) bool, problem func() string) {
	chosen := func(r *Rule) *selection.Selection {
		sel, err := selection.Compile(&r.Filter, 0, view)
		if err != nil { // the file would have been refused
			sel = &selection.Selection{Reads: func(*dlq.Letter) bool { return false }}
		}
		sel.Quotes = false // a user who sees a rule may not read letters
		return sel
	}
	own := chosen(r)
	var others []dlq.Filter
	for b := range r.Earlier(topic) {
		others = append(others, chosen(b).Whole())
	}
	return func(l *dlq.Letter) bool { return (own.Reads == nil || own.Reads(l)) && !selectedBy(others, l) }, own.Problem
}

// selectedBy reports whether one of some filters selects a letter.
func selectedBy(filters []dlq.Filter, l *dlq.Letter) bool {
	return slices.ContainsFunc(filters, func(f dlq.Filter) bool { return f.Selects(l) })
}

// Whole returns a filter that decides all, made of one that an index decides.
func (r *Rule) Whole(topic string, f dlq.Filter, view selection.View) dlq.Filter {
	if r.Reads(topic) {
		known := f.Match
		fits, _ := r.Fits(topic, view)
		f.Match = func(l *dlq.Letter) bool { return (known == nil || known(l)) && fits(l) }
	}
	return f
}

// Covers reports whether a rule is for a dead-letter topic.
func (r *Rule) Covers(topic string) bool {
	fits, _ := path.Match(r.Topics, topic)
	return fits
}

// WithDefaults sets the fields that are zero to their defaults.
func (r *Rule) WithDefaults() {
	or := func(d *time.Duration, by time.Duration) {
		if *d == 0 {
			*d = by
		}
	}
	if r.Delay == 0 {
		or(&r.CoolDown, 15*time.Minute)
	}
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
	if len(r.Filter.Class) == 0 {
		wrong("classes", "required: a rule for all classes would redrive bugs")
	}
	sel, err := selection.Compile(&r.Filter, 0, selection.View{})
	if mistakes, ok := errors.AsType[selection.Mistakes](err); ok {
		for _, m := range mistakes {
			line, _, _ := strings.Cut(m.Problem, "\n") // the others point at the column
			wrong(partKeys[m.Key], "%s", line)
		}
	} else {
		r.selects = sel.Filter
		r.selects.Dialects = Dialects
	}
	for _, d := range []struct {
		key string
		is  time.Duration
	}{{"cool-down", r.CoolDown}, {"delay", r.Delay}, {"window", r.Window}, {"wait", r.Wait}} {
		if d.is < 0 {
			wrong(d.key, "%v is below 0", d.is)
		}
	}
	if r.MaxWait < r.Wait {
		wrong("max-wait", "%s is below wait, %s", duration.Short(r.MaxWait), duration.Short(r.Wait))
	}
	if r.Rate < 0 {
		wrong("rate", "%v is below 0: it is in records a second", r.Rate)
	}
	if r.MaxReplays < 0 {
		wrong("max-replays", "%d is below 0: it is how often one record may be redriven", r.MaxReplays)
	}
	zone, err := time.LoadLocation(r.Zone)
	if r.zone = zone; err != nil {
		wrong("zone", "%q is no time zone: as in Europe/Berlin", r.Zone)
	}
	r.schedule = Schedule{CoolDown: r.CoolDown, Wait: r.Wait, MaxWait: r.MaxWait}
	for i, text := range r.Times {
		t, err := ParseTimes(text)
		if err != nil {
			wrong(fmt.Sprintf("times[%d]", i), "%v", err)
		}
		r.schedule.Times = append(r.schedule.Times, t)
	}
}

// partKeys has the key of a rule for each part of a filter, by its name in the API.
var partKeys = func() map[string]string {
	keys := map[string]string{}
	for part := range reflect.TypeFor[api.Filter]().Fields() {
		name, _, _ := strings.Cut(part.Tag.Get("json"), ",")
		keys[name] = part.Tag.Get("yaml")
	}
	return keys
}()

// emptyParts returns the keys of the parts of a filter that a file has, and that are empty. Only a
// record's key may be. For classes there is an error anyway.
func emptyParts(f *api.Filter, has func(key string) bool) (keys []string) {
	values := reflect.ValueOf(*f)
	for i := range values.NumField() {
		key, value := values.Type().Field(i).Tag.Get("yaml"), values.Field(i)
		texts, isList := value.Interface().([]string)
		if text, isText := value.Interface().(string); isText {
			texts = []string{text}
		}
		isBlank := func(s string) bool { return strings.TrimSpace(s) == "" }
		empty := value.IsZero() || isList && (len(texts) == 0 || key != "keys" && slices.ContainsFunc(texts, isBlank)) || !isList && slices.ContainsFunc(texts, isBlank)
		if empty && has(key) && !(key == "classes" && len(texts) == 0) {
			keys = append(keys, key)
		}
	}
	return keys
}

// File is the content of a file of rules.
type File struct {
	// Rules are applied in this order. Required: [] is none.
	Rules []Rule `yaml:"rules"`
}

// Parse reads a file of rules. name is for errors.
func Parse(name string, text []byte) ([]Rule, error) {
	var content File
	file, mistakes := yamlfile.Decode(name, text, &content)
	if file == nil {
		return nil, mistakes
	}
	var all []error
	if content.Rules == nil { // an editor empties a file before it writes it
		all = append(all, &yamlfile.KeyError{Key: "rules", Problem: "required: a list of rules, or [] for none"})
	}
	names := map[string]bool{}
	for i := range content.Rules {
		r := &content.Rules[i]
		r.WithDefaults()
		wrong := func(key, format string, args ...any) {
			all = append(all, &yamlfile.KeyError{Key: fmt.Sprintf("rules[%d].%s", i, key), Problem: fmt.Sprintf(format, args...)})
		}
		r.check(wrong)
		for _, key := range emptyParts(&r.Filter, func(key string) bool { return file.Has(fmt.Sprintf("rules[%d].%s", i, key)) }) {
			wrong(key, "it is empty, %s", api.EmptyFilter)
		}
		if names[r.Name] {
			wrong("name", "%q: another rule has this name", r.Name)
		}
		names[r.Name] = true
		r.before = content.Rules[:i:i]
	}
	if err := errors.Join(mistakes, file.Further(errors.Join(all...), nil)); err != nil {
		return nil, file.At(err)
	}
	return content.Rules, nil
}

// Read reads a file of rules, and again when it changes.
func Read(name string, log *slog.Logger) (*yamlfile.Watched[[]Rule], error) {
	f, err := yamlfile.Watch(name, Parse, log)
	return f, yamlfile.NamedBy("rules-file", err)
}
