package console

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/console/view"
	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/request"
)

// rulesModel is the model of the template "rules".
type rulesModel struct {
	Summary []phrase
	Rules   []ruleModel
}

// ruleModel is a rule with its states.
type ruleModel struct {
	Name, HTML string
	Gauges     []gauge
	On         []ruleOnModel
}

// ruleOnModel is the state of a rule on a topic.
type ruleOnModel struct {
	api.RuleOnTopic
	Link, TopicLink string
	State           string
	Red             bool
	Until, PausedAt moment
}

// rulesPage is the page of all rules.
func rulesPage(d *operate.Desk, r *visit) (*page, error) {
	who, base, topics := r.who, r.base, topicsOf(d, r)
	return &page{
		Title: "Rules", Section: "rules", Heading: "Rules",
		// A rule without a topic is shown to those who may see all.
		live: viewOf("rules", view.KeyOf(append([]string{base, who.Rights()}, topics...)...), versionOf(d, topics), func(ctx context.Context, now time.Time) (any, error) {
			all, err := operate.ListRules(ctx, d, who, &request.Nothing{})
			if err != nil {
				return nil, err
			}
			return newRulesModel(all, base, now), nil
		}),
	}, nil
}

func newRulesModel(all []api.Rule, base string, now time.Time) rulesModel {
	m := rulesModel{Summary: rulesPhrases(all)}
	for i := range all {
		rule := ruleModel{Name: all[i].Name, HTML: idOf(all[i].Name), Gauges: ruleGauges(&all[i])}
		for _, on := range all[i].On {
			rule.On = append(rule.On, newRuleOn(&on, base, all[i].Name, now))
		}
		m.Rules = append(m.Rules, rule)
	}
	return m
}

func newRuleOn(on *api.RuleOnTopic, base, rule string, now time.Time) ruleOnModel {
	m := ruleOnModel{RuleOnTopic: *on, Link: rulePath(base, rule, on.Topic), TopicLink: topicPath(base, on.Topic), State: "ready", Until: momentAt(on.Until, now)}
	switch {
	case on.Paused != nil:
		m.State, m.PausedAt = "paused", momentOf(on.Paused.At, now)
	case on.Open:
		m.State, m.Red = "circuit open", true
	}
	return m
}

func rulesPhrases(all []api.Rule) (says []phrase) {
	if len(all) == 0 {
		return []phrase{{Text: "no rules"}}
	}
	var open, paused int64
	for i := range all {
		for _, on := range all[i].On {
			if on.Open {
				open++
			}
			if on.Paused != nil {
				paused++
			}
		}
	}
	says = append(says, phrase{Text: number.Of(int64(len(all)), "rule")})
	if open > 0 {
		says = append(says, phrase{Text: "circuit open on " + number.Of(open, "topic"), Red: true})
	}
	if paused > 0 {
		says = append(says, phrase{Text: "paused on " + number.Of(paused, "topic")})
	}
	return says
}

// ruleGauges returns in words what a rule is.
func ruleGauges(r *api.Rule) []gauge {
	ms := func(n int64) string { return span(time.Duration(n) * time.Millisecond) }
	anyOf := func(all []string) string {
		if len(all) == 0 {
			return "any"
		}
		return list(all)
	}
	times := anyOf(r.Times)
	if len(r.Times) > 0 {
		times += " " + r.Zone
	}
	says := []gauge{{"topics", r.Topics}, {"classes", anyOf(r.Classes)}, {"groups", anyOf(r.Groups)}}
	f := &r.Filter
	for _, part := range []struct {
		name string
		all  []string
	}{{"fingerprints", f.Fingerprint}, {"reasons", f.Reason}, {"keys", f.Key}, {"headers", f.Header}, {"attempts", []string{f.Attempts}}, {"where", []string{f.Where}}} {
		if len(part.all) > 0 && part.all[0] != "" {
			says = append(says, gauge{part.name, list(part.all)})
		}
	}
	for _, bound := range []struct {
		name string
		at   time.Time
	}{{"failed since", f.Since}, {"failed until", f.Until}, {"written since", f.EnteredSince}, {"written until", f.EnteredUntil}} {
		if !bound.at.IsZero() {
			says = append(says, gauge{bound.name, bound.at.UTC().Format(time.RFC3339)})
		}
	}
	return append(says, []gauge{
		{"quiet before", ms(r.CoolDownMs)},
		{"delay", ms(r.DelayMs)},
		{"times", times},
		{"rate", decimal(rateOr(r.Rate)) + "/s"},
		{"window", ms(r.WindowMs)},
		{"redrives of a record", number.Format(int64(r.MaxReplays))},
		{"rests after an abort", ms(r.WaitMs) + " to " + ms(r.MaxWaitMs)},
	}...)
}

// ruleTopicModel is the model of the template "rule".
type ruleTopicModel struct {
	Rule    string
	On      *ruleOnModel
	Effect  string
	Problem string
	History []ruleEventRow
	// Do is what its form does, paused or resumed; empty without the role, with Cannot as why.
	Do, Button, Here, Cannot string
	Key, Why                 string
}

type ruleEventRow struct {
	api.RuleEvent
	When moment
	Link string
}

// ruleForm is the page of a rule on one topic: what it would do now, and what it did. Its form
// pauses it, or lets it go on.
func ruleForm(s *site, r *visit) (*answer, error) {
	d := s.cfg.Desk
	is := request.RuleOn{Rule: request.Rule{Rule: r.PathValue("rule")}, Topic: request.Topic{Topic: r.PathValue("topic")}}
	rule, name := is.Rule.Rule, is.Topic.Topic
	role, err := roleOn(d, r, name)
	if err != nil {
		return nil, err
	}
	why := r.query.Get("why")
	var problem error
	if r.does() {
		do := operate.PauseRule
		if r.query.Get("act") == "resume" {
			do = operate.ResumeRule
		}
		problem = s.once(r, func() error {
			_, err := do(r.Context(), d, r.who, &request.Pause{RuleOn: is, Body: api.PauseRequest{Why: strings.TrimSpace(why)}})
			return err
		})
		if problem == nil {
			return &answer{to: rulePath(r.base, rule, name)}, nil
		}
	}
	on, err := operate.TryRule(r.Context(), d, r.who, &is)
	if err != nil {
		return nil, err
	}
	history, err := operate.RuleHistory(r.Context(), d, r.who, &request.History{Rule: is.Rule})
	if err != nil {
		return nil, err
	}
	m := newRuleTopicModel(rule, &on, history, r.base, role, r.now)
	m.Why, m.Problem = why, s.problemOf(r, problem)
	return &answer{
		page:     page{Title: "Rule " + rule + " · " + name, Section: "rules", Heading: "Rule " + rule, Above: []link{{"Rules", r.base + "/rules"}, {name, topicPath(r.base, name)}}, Role: role.String()},
		template: "rule", model: m, problem: problem,
	}, nil
}

// newRuleTopicModel returns the page of a rule on a topic, for a sender with a role. history is
// what it did on all topics.
func newRuleTopicModel(rule string, on *api.RuleOnTopic, history []api.RuleEvent, base string, role access.Role, now time.Time) *ruleTopicModel {
	is := newRuleOn(on, base, rule, now)
	m := &ruleTopicModel{Rule: rule, Here: is.Link, On: &is, Effect: wouldText(on), Key: rand.Text()}
	for i := range history {
		if e := &history[i]; e.Topic == on.Topic {
			m.History = append(m.History, ruleEventRow{*e, momentOf(e.At, now), runPath(is.TopicLink, e.Run)})
		}
	}
	switch {
	case role < access.Admin:
		m.Cannot = "To pause a rule, and to let it go on, takes the role " + access.Admin.String() + " on " + on.Topic + ". Whoever configures the server gives it, by your name or by one of your groups."
	case on.Paused != nil:
		m.Do, m.Button = "resume", "Let it go on"
	default:
		m.Do, m.Button = "pause", "Pause it here"
	}
	return m
}

// wouldText returns in words what a rule would do now. The reason follows.
func wouldText(on *api.RuleOnTopic) string {
	switch on.Would {
	case "redrive":
		return "It would bring " + number.Of(on.Letters, "letter") + " back now"
	case "canary":
		return "It would bring one letter back now, to see whether it fails again"
	}
	return "It would do nothing now"
}
