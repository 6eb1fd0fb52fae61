package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
)

// command is a line for a shell that shows or does the same as a page. The brokers and the server's
// address are the shell's: as README and docs/serve.md have them, in a profile and in $API and
// $AUTH.
type command struct{ What, Text string }

// shellLine returns words as a shell reads them.
func shellLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}

// plainWord are the characters that need no quotes.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,"

// shellWord quotes a word, if it has to be. What cannot be seen is written as bash, zsh and ksh
// read it, so that a text is what it looks like.
func shellWord(w string) string {
	switch {
	case w != "" && strings.Trim(w, plainWord) == "":
		return w
	case !strings.ContainsFunc(w, hides) && strings.ToValidUTF8(w, "") == w:
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, c := range []byte(w) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}

// redriveLine returns a call of the program for a topic.
func redriveLine(verb, topic string, flags ...string) string {
	words := append([]string{"redrive", verb, topic}, flags...)
	if strings.HasPrefix(topic, "-") {
		words = append(append([]string{"redrive", verb}, flags...), "--", topic)
	}
	return shellLine(words...)
}

// listed returns a value as a flag takes it that splits at commas.
func listed(value string) string {
	if strings.ContainsAny(value, ",\"\r\n") {
		return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
	}
	return value
}

// flagsOf returns a filter as flags of the program.
func flagsOf(f *api.Filter) (flags []string) {
	add := func(name string, values ...string) {
		for _, v := range values {
			flags = append(flags, "--"+name, v)
		}
	}
	for _, l := range []struct {
		name   string
		values []string
	}{{"class", f.Class}, {"fingerprint", f.Fingerprint}, {"group", f.Group}, {"reason", f.Reason}, {"state", f.State}, {"offset", f.Offset}} {
		for _, v := range l.values {
			add(l.name, listed(v))
		}
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"since", f.Since}, {"until", f.Until}, {"entered-since", f.EnteredSince}, {"entered-until", f.EnteredUntil}} {
		if !t.at.IsZero() {
			add(t.name, t.at.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.Where != "" {
		add("where", f.Where)
	}
	return flags
}

// queryOf returns a filter as the API takes it in an address.
func queryOf(f *api.Filter) string {
	q := url.Values{"class": f.Class, "fingerprint": f.Fingerprint, "group": f.Group, "reason": f.Reason, "state": f.State, "offset": f.Offset}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	if !f.Since.IsZero() {
		set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		set("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	set("where", f.Where)
	if text := q.Encode(); text != "" {
		return "?" + text
	}
	return ""
}

const curl = `curl -H "$AUTH" `

// apiPath is a path of the API about a topic, within quotes.
func apiPath(topic, rest string) string { return `"$API/topics/` + url.PathEscape(topic) + rest + `"` }

// isAge reports whether a time of an address is one that is so long ago.
func isAge(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil || strings.HasSuffix(text, "d")
}

// listCommands show the letters of a filter. An age stays one for the program; for the API it is a
// time, to the minute: with each look it would be another one.
func listCommands(topic string, f *Filter) []command {
	asked, flagged := f.api(), f.api()
	var ages []string
	for _, t := range []struct {
		name, text     string
		asked, flagged *time.Time
	}{{"since", f.since, &asked.Since, &flagged.Since}, {"until", f.until, &asked.Until, &flagged.Until}} {
		if isAge(t.text) {
			*t.asked, *t.flagged = t.asked.Truncate(time.Minute), time.Time{}
			ages = append(ages, "--"+t.name, t.text)
		}
	}
	var all []command
	if f.State == "all" {
		flagged.State, ages = nil, append(ages, "--all")
	}
	flags := append(flagsOf(&flagged), ages...)
	if f.State != string(dlq.Expired) { // the program lists no letters that are gone
		all = append(all, command{"list the letters", redriveLine("list", topic, flags...)})
	}
	if f.State == "" {
		all = append(all, command{"count them", redriveLine("summary", topic, flags...)}, command{"plan a redrive", redriveLine("plan", topic, flags...)})
	}
	return short(append(all, command{"with the HTTP API", curl + apiPath(topic, "/letters"+queryOf(&asked))}))
}

// mostCommand bounds a command, in bytes.
const mostCommand = 8 << 10

// short leaves out the commands that are too long for a shell's line.
func short(all []command) []command {
	return slices.DeleteFunc(all, func(c command) bool { return len(c.Text) > mostCommand })
}

// letterCommands show a letter.
func letterCommands(topic string, partition int32, offset int64) []command {
	at := fmt.Sprintf("%d:%d", partition, offset)
	return []command{
		{"show the letter", redriveLine("show", topic, at)},
		{"with the HTTP API", curl + apiPath(topic, fmt.Sprintf("/letters/%d/%d", partition, offset))},
	}
}

// planCommands begin the run of a plan. A new value is too much for a flag: then there is no call
// of the program.
func planCommands(topic string, in *api.RunRequest) (all []command) {
	if in.Edit.Value == nil {
		all = append(all, command{"begin the run", redriveLine("run", topic, append(flagsOf(&in.Filter), runFlags(&in.RunOptions)...)...)})
	}
	body, err := json.Marshal(in)
	if err != nil {
		return all // it was read from a form
	}
	return short(append(all, command{"with the HTTP API", curl + `-H 'Content-Type: application/json' ` + apiPath(topic, "/runs") + " -d " + shellWord(string(slim(body)))}))
}

// slim drops the empty parts of a body.
func slim(body []byte) []byte {
	var parts map[string]json.RawMessage
	if json.Unmarshal(body, &parts) != nil {
		return body
	}
	for key, part := range parts {
		if string(part) == "{}" {
			delete(parts, key)
		}
	}
	slimmed, err := json.Marshal(parts)
	if err != nil {
		return body
	}
	return slimmed
}

// runFlags returns the options of a run as flags of the program; -1 is no limit in one, and 0 in
// the other.
func runFlags(o *api.RunOptions) (flags []string) {
	add := func(name, value string) { flags = append(flags, "--"+name, value) }
	if o.Pace.Rate != 0 {
		add("rate", strconv.FormatFloat(max(o.Pace.Rate, 0), 'f', -1, 64))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"canary", int64(o.Pace.Canary)}, {"max-redrives", int64(o.MaxRedrives)}} {
		if n.value != 0 {
			add(n.name, strconv.FormatInt(max(n.value, 0), 10))
		}
	}
	for _, d := range []struct {
		name string
		ms   int64
	}{{"ramp", o.Pace.RampMs}, {"window", o.Pace.WindowMs}} {
		if d.ms != 0 {
			add(d.name, (time.Duration(max(d.ms, 0)) * time.Millisecond).String())
		}
	}
	if o.Pace.Tolerate > 0 {
		add("tolerate", fmt.Sprintf("%d,10%%", o.Pace.Tolerate))
	}
	if o.Target.Topic != "" {
		add("target", o.Target.Topic)
	}
	for _, h := range o.Edit.SetHeaders {
		add("set-header", h.Key+"="+h.Value.Text)
	}
	for _, key := range o.Edit.UnsetHeaders {
		add("unset-header", key)
	}
	if len(o.Edit.Patch) > 0 {
		add("patch", string(o.Edit.Patch))
	}
	if o.Why != "" {
		add("why", o.Why)
	}
	return slices.Clip(flags)
}
