package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

func rules(t testing.TB, paths, names, patterns string) *Rules {
	t.Helper()
	some := func(s string) []Text {
		if s == "" {
			return nil
		}
		return []Text{{s, "--redact"}}
	}
	r, err := Parse(some(paths), some(names), some(patterns))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRules_HidePartsOfAValue(t *testing.T) {
	t.Parallel()
	const value = `{ "customer": {"name":"Ada", "card":4111111111111111}, "items":[{"iban":"DE1","n":1.0},{"iban":"DE2","deep":[[{"iban":"DE3"}]]}], "a.b":"x" }`
	for _, c := range []struct{ paths, patterns, value, want string }{
		{"customer.card", "", value, strings.Replace(value, "4111111111111111", `"[redacted]"`, 1)},
		{"$.customer.card", "", value, strings.Replace(value, "4111111111111111", `"[redacted]"`, 1)},
		// as decoders find them
		{"Customer.CARD", "", value, strings.Replace(value, "4111111111111111", `"[redacted]"`, 1)},
		{"customer", "", value, strings.Replace(value, `{"name":"Ada", "card":4111111111111111}`, `"[redacted]"`, 1)},
		// as --where calls it
		{"value.customer.card", "", value, strings.Replace(value, "4111111111111111", `"[redacted]"`, 1)},
		{"value.x", "", `{"value":{"x":1},"x":2}`, `{"value":{"x":"[redacted]"},"x":"[redacted]"}`},
		{"items[*].iban", "", value, strings.NewReplacer(`"DE1"`, `"[redacted]"`, `"DE2"`, `"[redacted]"`).Replace(value)},
		{"items[1].iban", "", value, strings.Replace(value, `"DE2"`, `"[redacted]"`, 1)},
		// lists are looked through
		{"items.iban", "", value, strings.NewReplacer(`"DE1"`, `"[redacted]"`, `"DE2"`, `"[redacted]"`).Replace(value)},
		{"items.deep.iban", "", value, strings.Replace(value, `"DE3"`, `"[redacted]"`, 1)},
		{"..iban", "", value, strings.NewReplacer(`"DE1"`, `"[redacted]"`, `"DE2"`, `"[redacted]"`, `"DE3"`, `"[redacted]"`).Replace(value)},
		{"customer.*, ['a.b']", "", value, strings.NewReplacer(`"Ada"`, `"[redacted]"`, "4111111111111111", `"[redacted]"`, `"x"`, `"[redacted]"`).Replace(value)},
		{"..*", "", `{"a":{"b":[1]}}`, `{"a":"[redacted]"}`},
		{"card", "", value, value}, // is no member of the whole
		{"a", "", `{"a":null,"b":{"a":1}}`, `{"a":null,"b":{"a":1}}`},
		{"a", "", `{"a":""}`, `{"a":""}`},
		// A library that decodes would find only the last one.
		{"a.b", "", `{"a":{"b":1},"a":{"b":2,"b":3},"a":4}`, `{"a":{"b":"[redacted]"},"a":{"b":"[redacted]","b":"[redacted]"},"a":4}`},
		{"a", "", `[{"a":1},{"a":2}]`, `[{"a":"[redacted]"},{"a":"[redacted]"}]`},
		{"a", "", `"text"`, `"text"`},
		{"a", "", "4111 1111", "[redacted] 9 bytes that are no JSON"},
		{"a", "", "{}\n{\"a\":1}", "[redacted] 10 bytes that are no JSON"},
		// one more rule must not show what was hidden: JSON that was cut, or that stands behind
		// bytes
		{"customer.card", `\d{16}`, `{"customer":{"Card":"4111-1111`, "[redacted] 30 bytes that are no JSON"},
		{"items[*].iban[0]", `\d{16}`, "\ufeff" + `{"items":[{"iban":["DE1"]}]}`, "[redacted] 31 bytes that are no JSON"},
		{"..*", `\d{16}`, "DE1", "[redacted] 3 bytes that are no JSON"},
		{"customer.card", `\d{16}`, "no member: 4111111111111111", "no member: [redacted]"},
		{"a", "", "", ""},
		{"", `\d{16}`, value, strings.Replace(value, "4111111111111111", `"[redacted]"`, 1)},
		{"", `\d{16}`, `{"note":"card 4111111111111111 declined"}`, `{"note":"card [redacted] declined"}`},
		// of the documentation: cards in groups, and no Unix milliseconds
		{"", `\b\d(?:[ -]?\d){13,18}\b`, `{"at":1763640000123,"a":"4111 1111 1111 1111","b":"4111-1111-1111-1111.","c":4111111111111111}`, `{"at":1763640000123,"a":"[redacted]","b":"[redacted].","c":"[redacted]"}`},
		// as a reader of the JSON sees it
		{"", `\d{16}`, `{"note":"\u00341111111\u00311111111"}`, `{"note":"[redacted]"}`},
		{"", `\d{16}`, `{"4111111111111111":true}`, `{"[redacted]":true}`},
		// no JSON any more, but not shown
		{"", `"name":"Ada"`, value, strings.Replace(value, `"name":"Ada"`, "[redacted]", 1)},
		{"", `\d{16}`, "card 4111111111111111\xff", "card [redacted]\xff"},
		// JSON in a string of JSON, once and twice
		{"payload.card", "", `{"payload":"{ \"card\":\"4111\",\"n\":1 }","card":2}`, `{"payload":"{ \"card\":\"[redacted]\",\"n\":1 }","card":2}`},
		{"payload.items[0].iban", "", `{"payload":"[{\"items\":[{\"iban\":\"DE1\"},{\"iban\":\"DE2\"}]}]"}`, `{"payload":"[{\"items\":[{\"iban\":\"[redacted]\"},{\"iban\":\"DE2\"}]}]"}`},
		{"..card", "", `"{\"a\":\"{\\\"card\\\":4111}\"}"`, `"{\"a\":\"{\\\"card\\\":\\\"[redacted]\\\"}\"}"`},
		{"payload.card", `\d{16}`, `{"payload":"{\"note\":\"\\u00341111111\\u00311111111\"}"}`, `{"payload":"{\"note\":\"[redacted]\"}"}`},
		{"payload.card", "", `{"payload":"{\"n\": 1.0}","other":"{\"card\":1}"}`, `{"payload":"{\"n\": 1.0}","other":"{\"card\":1}"}`},
		// it was cut
		{"payload.card", "", `{"payload":"{\"Card\":\"4111"}`, `{"payload":"[redacted]"}`},
		{"payload.card", "", `{"payload":"[urgent] card 4111"}`, `{"payload":"[urgent] card 4111"}`},
		// a pattern is for that
		{"a", `\d{16}`, "card 4111111111111111, a=1", "card [redacted], a=1"},
		{"a.b", `Ada`, `{"a":{"b":1},"c":"Ada"}`, `{"a":{"b":"[redacted]"},"c":"[redacted]"}`},
	} {
		r := rules(t, c.paths, "", c.patterns)
		got, hidden := r.Bytes([]byte(c.value))
		if string(got) != c.want || hidden != (c.want != c.value) {
			t.Errorf("%q %q of %s:\n got %s, %v\nwant %s", c.paths, c.patterns, c.value, got, hidden, c.want)
		}
	}
	var none *Rules
	if got, hidden := none.Bytes([]byte("x")); string(got) != "x" || hidden {
		t.Errorf("without rules: %q", got)
	}
}

func TestRules_HidePartsOfALetter(t *testing.T) {
	t.Parallel()
	m := headers.Meta{
		Class: "tax", Reason: headers.ReasonTerminal, Message: "card 4111 declined", Stack: "main.charge(4111)", Attempts: 1,
		History: []headers.Attempt{{Number: 1, Class: "tax", At: time.UnixMilli(1), Verdict: "retry", Message: "card, 4111"}},
	}
	value := []byte(`{"card":"4111"}`)
	l := &dlq.Letter{Record: &kgo.Record{
		Key: []byte("order-4111"), Value: value,
		Headers: m.Append([]kgo.RecordHeader{{Key: "Authorization", Value: []byte("Bearer x")}, {Key: "region", Value: []byte("eu")}, {Key: "json", Value: []byte(`{"card":1}`)}}),
	}, Meta: m, MetaErr: errors.New(`dlq-hops: "4111" is no number`)}
	for _, c := range []struct {
		r                     *Rules
		hides, shows          string
		key, message, history string
	}{
		{rules(t, "card", "", "4111"), "4111", "eu", "order-[redacted]", "card [redacted] declined", "card, [redacted]"},
		// in the header of the history, the comma is encoded
		{rules(t, "", "", "card, 4111"), "card%2C 4111", "eu", "order-4111", "card 4111 declined", "[redacted]"},
		{rules(t, "", "authorization", ""), "Bearer", "eu", "order-4111", "card 4111 declined", "card, 4111"},
		{rules(t, "", "dlq-error-msg, dlq-history,dlq-error-stack", ""), "declined", "4111", "order-4111", "[redacted]", "[redacted]"},
	} {
		shown, _ := c.r.Letter(l)
		var all strings.Builder
		all.Write(shown.Record.Key)
		all.Write(shown.Record.Value)
		for _, h := range shown.Record.Headers {
			all.WriteString(h.Key + string(h.Value))
		}
		all.WriteString(shown.Meta.Message + shown.Meta.Stack + shown.Meta.History[0].Message + shown.MetaErr.Error())
		if text := all.String(); strings.Contains(text, c.hides) || !strings.Contains(text, c.shows) {
			t.Errorf("%q is shown, or %q is not: %s", c.hides, c.shows, text)
		}
		if string(shown.Record.Key) != c.key || shown.Meta.Message != c.message || shown.Meta.History[0].Message != c.history {
			t.Errorf("%s: %+v", shown.Record.Key, shown.Meta)
		}
	}
	if d := cmp.Diff(string(value), string(l.Record.Value)); d != "" || l.Meta.History[0].Message != "card, 4111" || string(l.Record.Headers[0].Value) != "Bearer x" {
		t.Errorf("the letter has changed: %+v", l)
	}
}

// The reason of a discard by a handler is its error, which was hidden in the headers and not in
// what the ledger has about the letter.
func TestRules_HidePartsOfLedgerRecords(t *testing.T) {
	t.Parallel()
	records := []*dlq.LedgerRecord{
		{Entry: dlq.Entry{State: dlq.Discarded, Run: "r1", By: "group billing", Why: "card 4111"}},
		{Entry: dlq.Entry{State: dlq.Discarded, By: "ada", Why: "refunded to 4111"}},
		{Err: errors.New("its state is 4111")},
	}
	for _, c := range []struct {
		r    *Rules
		want string
	}{
		{rules(t, "", "", "4111"), "card [redacted]; refunded to [redacted]; its state is [redacted]"},
		{rules(t, "", "dlq-error-msg", ""), "[redacted]; refunded to 4111; its state is 4111"},
		{nil, "card 4111; refunded to 4111; its state is 4111"},
	} {
		shown := c.r.Records(records)
		if got := shown[0].Entry.Why + "; " + shown[1].Entry.Why + "; " + shown[2].Err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if records[0].Entry.Why != "card 4111" {
		t.Errorf("the ledger's record has changed: %+v", records[0])
	}
}

// A pattern for the numbers of cards fits Unix milliseconds too, and hid the times of siding's own
// headers. A header that is a number is no JSON for its reader: the mark stood in quotes.
func TestRules_APatternLeavesTheTimesOfSiding(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1763640000123)
	m := headers.Meta{
		Class: "tax", Reason: headers.ReasonTerminal, Message: "at 1763640000123", Attempts: 1, FirstFailedAt: at, FailedAt: at, Redrive: headers.Redrive{ID: "r", Count: 1, From: headers.Position{Topic: "orders.dlq"}, At: at},
		Original: headers.Position{Topic: "orders", Offset: 1763640000123, Timestamp: at}, History: []headers.Attempt{{Number: 1, Class: "tax", At: at, Verdict: "retry", Message: "no card"}},
	}
	user := []kgo.RecordHeader{{Key: "card", Value: []byte("4111111111111")}, {Key: "dlq-hops", Value: []byte("4111111111111111")}}
	r := &kgo.Record{Key: []byte("4111111111111"), Value: []byte("4111111111111"), Headers: append(m.Append(nil), user...)}
	shown, hidden := rules(t, "", "", `\b\d{13,19}\b`).Letter(&dlq.Letter{Record: r, Meta: m})
	if string(shown.Record.Key) != Mark || string(shown.Record.Value) != Mark || !hidden {
		t.Errorf("key %s, value %s", shown.Record.Key, shown.Record.Value)
	}
	for i, h := range shown.Record.Headers {
		want := string(r.Headers[i].Value)
		if h.Key == "card" || want == "4111111111111111" {
			want = Mark
		} else if h.Key == headers.ErrorMessage {
			want = "at " + Mark
		}
		if string(h.Value) != want {
			t.Errorf("%s: %s, want %s", h.Key, h.Value, want)
		}
	}
}

// A rule about a header that is a field of dlq-meta today hides the field, and a pattern sees a
// field's text as it was before it was encoded.
func TestRules_HideAFieldAsTheHeaderThatItWas(t *testing.T) {
	t.Parallel()
	const meta = "ts=1763640000123;host=node-7;env=card%3B 4111;later=4111;run=r;"
	for _, c := range []struct {
		headers, patterns string
		meta, want        string
	}{
		{"dlq-host", "", meta, strings.Replace(meta, "node-7", Mark, 1)},
		{"host,dlq-meta2", "", meta, meta},
		{"DLQ-META", "", meta, Mark},
		{"", "card; 4111", meta, strings.Replace(meta, "card%3B 4111", Mark, 1)},
		{"", "=4111", meta, strings.Replace(meta, "later=4111;", "later"+Mark+";", 1)},
		{"", `\d{13}`, meta, meta},
		{"dlq-host", "", "env=x;host=node-7", "env=x;" + Mark},
	} {
		r := &kgo.Record{Headers: []kgo.RecordHeader{{Key: headers.MetaFields, Value: []byte(c.meta)}}}
		shown, _ := rules(t, "", c.headers, c.patterns).Letter(&dlq.Letter{Record: r})
		if got := string(shown.Record.Headers[0].Value); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.headers, c.patterns, got, c.want)
		}
	}
}

func TestParse_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		paths, headers, patterns []string
		want                     []string
	}{
		{[]string{"a.", "a[", "a['x", "a[x]", "a b", "", "a,,b", "..", "a[-1]"}, nil, nil, []string{
			`--redact: "a." at column 3: a name is expected here`, `--redact: "a[" at column 3: the bracket does not end`, `--redact: "a['x" at column 3: the name's quote or bracket does not end`,
			`--redact: "a[x]" at column 3: a bracket takes a number`, `--redact: "a b" at column 2: a . or [ is expected here`, `--redact: "" at column 1: a path is missing`,
			`--redact: "a,,b" at column 3: a path is missing`, `--redact: ".." at column 3: a name is expected here`, `--redact: "a[-1]" at column 3: a bracket takes a number`,
		}},
		{nil, []string{"a,"}, []string{"(", "x*"}, []string{`SIDING_REDACT_HEADER: "a," has an empty name`, "redact-pattern of profile p: error parsing regexp: missing closing )", `redact-pattern of profile p: "x*" fits the empty text`}},
	} {
		from := func(name string, all []string) (texts []Text) {
			for _, text := range all {
				texts = append(texts, Text{text, name})
			}
			return texts
		}
		_, err := Parse(from("--redact", c.paths), from("SIDING_REDACT_HEADER", c.headers), from("redact-pattern of profile p", c.patterns))
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Fatalf("%d problems, want %d: %v", len(lines), len(c.want), err)
		}
		for i, want := range c.want {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%q, want %q", lines[i], want)
			}
		}
	}
	if r, err := Parse(nil, nil, nil); r != nil || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whatever the path and the value: what was JSON is JSON, what is hidden stays hidden, and what no
// path leads to stays byte for byte.
func FuzzRules_HideInJSON(f *testing.F) {
	for _, p := range []string{"customer.card", "items[*].iban", "a[0]['b.c']", "..card", "$..*", "a,b", "[*]", "a[", "..", "a..b[1]"} {
		f.Add(p, `{"customer":{"card":1},"items":[{"iban":"x"}],"a":[{"b.c":[1,{"card":null}]}]}`)
	}
	f.Add("a", `{"a":1,"a":{"a":2}}`)
	f.Add("a.a", " [ {\"\u0061\" : {\"A\":-1e9}} , \"\" ] ")
	f.Add("p.card,..n", `{"p":"{\"card\":[1],\"s\":\"[{\\\"n\\\":1}]\"}","q":"[cut \"n\""}`)
	f.Fuzz(func(t *testing.T, path, value string) {
		r, err := Parse([]Text{{path, "--redact"}}, nil, nil)
		if err != nil {
			return
		}
		shown, hidden := r.Bytes([]byte(value))
		switch {
		case !hidden && string(shown) != value:
			t.Errorf("%q: %q became %q", path, value, shown)
		case !json.Valid([]byte(value)):
		case !json.Valid(shown):
			t.Errorf("%q: %q became %q, which is no JSON", path, value, shown)
		default:
			if again, _ := r.Bytes(shown); string(again) != string(shown) {
				t.Errorf("%q: %q became %q, and that %q", path, value, shown, again)
			}
		}
	})
}

// marked returns a text with a mark in place of each part that a pattern fits.
func marked(p *regexp.Regexp, text string) string {
	var b strings.Builder
	at := 0
	for _, m := range p.FindAllStringIndex(text, -1) {
		b.WriteString(text[at:m[0]] + Mark)
		at = m[1]
	}
	return b.String() + text[at:]
}

// Whatever the names, the pattern and the letter: a header that is named is a mark, what a pattern
// fits is a mark in each text of the letter, all else stays byte for byte, and so does the letter
// itself.
func FuzzRules_HideHeadersAndTexts(f *testing.F) {
	for _, p := range []string{"hunter[0-9]+", "[0-9]{13,19}", "(?i)secret", "a|b", ".", "\\[redacted\\]", "^x", "(", "x*", "\\xff", "\\z.", "🙂+"} {
		f.Add("x-token, Authorization", p, "X-TOKEN", "hunter42 of 4111222233334444", "a secret\nin two lines")
		f.Add("", p, "note", "x🙂🙂\xff", "no")
	}
	f.Add(",", "a", "n", "v", "m")
	f.Add(" a ,b", "v", "B", "", "")
	f.Fuzz(func(t *testing.T, names, pattern, name, value, message string) {
		var named, patterns []Text
		if names != "" {
			named = []Text{{names, "headers"}}
		}
		if pattern != "" {
			patterns = []Text{{pattern, "patterns"}}
		}
		r, err := Parse(nil, named, patterns)
		if err != nil || r == nil {
			return
		}
		hides := func(text string) string { return text }
		if pattern != "" {
			p := regexp.MustCompile(pattern)
			hides = func(text string) string { return marked(p, text) }
		}
		if headers.Reserved(name) {
			t.Skip("siding's own headers have rules of their own")
		}
		l := &dlq.Letter{
			Record:  &kgo.Record{Value: []byte("\x00" + value), Headers: []kgo.RecordHeader{{Key: name, Value: []byte("\x00" + value)}, {Key: "other/name"}}},
			Meta:    headers.Meta{Message: message, Stack: value, History: []headers.Attempt{{Message: message}}},
			MetaErr: errors.New(message),
		}
		shown, hidden := r.Letter(l)
		if string(l.Record.Value) != "\x00"+value || l.Record.Headers[0].Key != name || string(l.Record.Headers[0].Value) != "\x00"+value || l.Meta.Message != message || l.Meta.History[0].Message != message {
			t.Errorf("the letter became %+v", l)
		}
		got := shown.Record.Headers[0]
		isNamed := slices.ContainsFunc(strings.Split(names, ","), func(n string) bool { return names != "" && strings.EqualFold(strings.TrimSpace(n), name) })
		switch {
		case isNamed && string(got.Value) != Mark:
			t.Errorf("header %q is named by %q, and shown as %q", name, names, got.Value)
		case !isNamed && string(got.Value) != hides("\x00"+value):
			t.Errorf("header %q is shown as %q", name, got.Value)
		}
		if want := hides("\x00" + value); string(shown.Record.Value) != want || hidden != (want != "\x00"+value) && !bytes.Contains([]byte(value), []byte(Mark)) {
			t.Errorf("the value %q is shown as %q, %v; want %q", value, shown.Record.Value, hidden, want)
		}
		if got.Key != hides(name) || shown.Meta.Stack != hides(value) || shown.Meta.Message != hides(message) || shown.Meta.History[0].Message != hides(message) || shown.MetaErr.Error() != hides(message) || r.Text(message) != hides(message) {
			t.Errorf("the texts are %+v, %v", shown.Meta, shown.MetaErr)
		}
	})
}
