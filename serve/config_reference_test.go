package serve

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/invopop/jsonschema"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

var writeReference = flag.Bool("reference", false, "write the reference of the configuration's keys, and the schemas, again")

// The part of docs/serve.md that this test writes with -reference.
const (
	referenceBegin = "<!-- keys: begin, written by `go test -C serve -run Reference . -reference` -->\n"
	referenceEnd   = "<!-- keys: end -->\n"
)

// configFiles are the files that people write, and the types that they are read into.
var configFiles = []struct {
	name string
	is   reflect.Type
	of   string // what it is
}{
	{"serve", reflect.TypeFor[Config](), "The configuration of redrive serve."},
	{"rules", reflect.TypeFor[rule.File](), "Rules by which redrive serve redrives letters: see rules-file in serve.yaml."},
	{"tokens", reflect.TypeFor[access.TokenList](), "Tokens that redrive serve accepts: see access.tokens-file in serve.yaml."},
}

// comments returns the comments of the fields of a module's types, as their package path, the type
// and the field, with dots between them.
func comments(t *testing.T) map[string]string {
	t.Helper()
	var r jsonschema.Reflector
	if err := r.AddGoComments("github.com/sidingkafka/siding/serve", "."); err != nil {
		t.Fatal(err)
	}
	return r.CommentMap
}

// schemaOf makes a JSON schema from a type and its comments.
func schemaOf(t *testing.T, is reflect.Type, comments map[string]string) *jsonschema.Schema {
	t.Helper()
	r := &jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, RequiredFromJSONSchemaTags: true, FieldNameTag: "yaml",
		Mapper: special,
		LookupComment: func(is reflect.Type, field string) string {
			if is == reflect.TypeFor[api.Filter]() {
				return aboutPart(is, field)
			}
			return aboutKey(field, comments[is.PkgPath()+"."+is.Name()+"."+field])
		},
	}
	s := r.ReflectFromType(is)
	complete(s)
	return s
}

// special returns the schemas of types that are more than their kind.
func special(is reflect.Type) *jsonschema.Schema {
	words := func(all ...string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range all {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	switch is {
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^-?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^[0-9]+d$|^0$`}
	case reflect.TypeFor[Criticality]():
		return words(string(Critical), string(High), string(Normal), string(Low), string(Minor))
	case reflect.TypeFor[incident.Severity]():
		return words(string(incident.Warn), string(incident.Page))
	case reflect.TypeFor[access.Role]():
		return words(access.Viewer.String(), access.Reader.String(), access.Operator.String(), access.Admin.String())
	}
	return nil
}

// aboutKey makes of a comment on a field a text about its key: "URL is the address" becomes "The
// address".
func aboutKey(field, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	for _, verb := range []string{" is ", " are ", " "} {
		if rest, ok := strings.CutPrefix(text, field+verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}

// aboutPart returns what the API says of a part of a filter, which is a key of a rule, too.
func aboutPart(is reflect.Type, field string) string {
	part, _ := is.FieldByName(field)
	if field == "Class" {
		return part.Tag.Get("doc") + " Required: a rule for whatever fails would redrive bugs."
	}
	return part.Tag.Get("doc") + " Default all."
}

var (
	byDefault = regexp.MustCompile(`(?:^| )Default (.*?)\.(?: |$)`)
	required  = regexp.MustCompile(`(?:^| )Required(?:\.|:|,)`)
)

// complete adds to a schema what the texts of its keys say: defaults, and which keys are required.
func complete(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	complete(s.Items)
	complete(s.AdditionalProperties)
	if s.Properties == nil {
		return
	}
	for name, p := range s.Properties.FromOldest() {
		complete(p)
		if required.MatchString(p.Description) {
			s.Required = append(s.Required, name)
		}
		if m := byDefault.FindStringSubmatch(p.Description); m != nil {
			p.Default = literal(p, m[1])
		}
	}
}

// literal returns a default as a value of the file; nil if it is given in words.
func literal(s *jsonschema.Schema, text string) any {
	if strings.Contains(text, " ") || slices.Contains([]string{"none", "all", "HTTP"}, text) || s.Type == "object" || s.Type == "array" {
		return nil
	}
	if s.Type == "string" {
		return text
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil
	}
	return v
}

// row is a key of a file.
type row struct {
	key    string
	schema *jsonschema.Schema
}

// rows returns the keys of a file, also those within others.
func rows(s *jsonschema.Schema, below string) (all []row) {
	if s == nil {
		return nil
	}
	if s.Properties != nil {
		for name, p := range s.Properties.FromOldest() {
			all = append(all, row{below + name, p})
			all = append(all, rows(p, below+name+".")...)
		}
	}
	if s.Type == "object" && s.AdditionalProperties != nil && s.Properties == nil {
		all = append(all, rows(s.AdditionalProperties, below+"NAME.")...)
	}
	below = strings.TrimSuffix(below, ".")
	return append(all, rows(s.Items, below+"[].")...)
}

// takes says what the value of a key is.
func takes(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return "word"
	case strings.Contains(s.Pattern, "ms|s"):
		return "duration"
	case s.Type == "array" && s.Items.Type == "object":
		return "list of keys"
	case s.Type == "array":
		return "texts"
	case s.Type == "object" && s.Properties != nil:
		return "keys"
	}
	return map[string]string{"object": "names with lists", "string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}[s.Type]
}

// reference returns the tables of the page.
func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	all := comments(t)
	for i, f := range configFiles {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### %s.yaml\n\n| key | takes | default | meaning |\n|---|---|---|---|\n", f.name)
		for _, r := range rows(schemaOf(t, f.is, all), "") {
			if r.schema.Description == "" {
				continue // the list of a file that is one
			}
			about, by := r.schema.Description, ""
			if m := byDefault.FindStringSubmatch(about); m != nil {
				by, about = m[1], strings.TrimSpace(strings.Replace(about, strings.TrimRight(m[0], " "), "", 1))
			}
			if r.schema.Default != nil {
				by = "`" + by + "`"
			}
			if required.MatchString(about) {
				by, about = "required", strings.TrimSpace(strings.Replace(about, "Required.", "", 1))
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.key, takes(r.schema), by, strings.ReplaceAll(about, "*", `\*`))
		}
	}
	return b.String()
}

// The page and the schemas have all keys, as the types and their comments say.
func TestConfig_ReferenceHasAllKeys(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	const page = "../docs/serve.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), referenceBegin)
	is, after, ok2 := strings.Cut(rest, referenceEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks %q or %q", page, referenceBegin, referenceEnd)
	}
	want := "\n" + reference(t) + "\n"
	if *writeReference {
		is, err = want, os.WriteFile(page, []byte(before+referenceBegin+want+referenceEnd+after), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	if is != want {
		t.Errorf("%s has other keys than the types: the line after %q says what writes them again", page, "Every key")
		for line := range strings.Lines(want) {
			if !strings.Contains(is, line) {
				t.Logf("missing: %s", line)
			}
		}
	}
	all := comments(t)
	for _, f := range configFiles {
		s := schemaOf(t, f.is, all)
		s.Title, s.Description = f.name+".yaml", f.of
		want, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		file := filepath.Join("..", "deploy", "schema", f.name+".schema.json")
		if *writeReference {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what the types make (%v): go test -C serve -run Reference . -reference writes it", file, err)
		}
	}
}

// A change that adds a key says what it means, and what it is if the file lacks it.
func TestConfig_KeysHaveCommentsWithDefaults(t *testing.T) {
	t.Parallel()
	all := comments(t)
	for _, f := range configFiles {
		list := rows(schemaOf(t, f.is, all), "")
		if len(list) == 0 {
			t.Errorf("%s.yaml has no keys", f.name)
		}
		for _, r := range list {
			if top := !strings.ContainsAny(r.key, ".["); top && f.name != "serve" {
				continue // the list itself
			}
			if r.schema.Description == "" {
				t.Errorf("%s.yaml: the field of %s has no comment", f.name, r.key)
			}
			if hasKeys := strings.Contains(takes(r.schema), "keys"); !hasKeys && !byDefault.MatchString(r.schema.Description) && !required.MatchString(r.schema.Description) && r.key != "notify[].url-env" && r.key != "notify[].url-file" {
				t.Errorf("%s.yaml: the comment of %s ends without its default, and is not required: %q", f.name, r.key, r.schema.Description)
			}
		}
	}
}

// The examples of the page are right.
func TestConfig_ExamplesOnThePageAreRight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		var cfg Config
		var err error
		switch first := regexp.MustCompile(`(?m)^[a-z-]+`).FindString(m[1]); first {
		case "rules":
			_, err = rule.Parse("rules.yaml", []byte(m[1]))
		case "tokens":
			_, err = yamlfile.Decode("tokens.yaml", []byte(m[1]), new(access.TokenList))
		default:
			if _, err = yamlfile.Decode("serve.yaml", []byte(m[1]), &cfg); err == nil {
				cfg = cfg.withDefaults()
				err = cfg.check()
			}
		}
		if tried++; err != nil {
			t.Errorf("%v in\n%s", err, m[1])
		}
	}
	if tried < 4 {
		t.Errorf("the page has %d examples", tried)
	}
}

// The defaults in the comments are those of the code.
func TestConfig_DefaultsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	all := comments(t)
	literals := func(s *jsonschema.Schema) (text string) {
		for name, p := range s.Properties.FromOldest() {
			if p.Default != nil {
				text += fmt.Sprintf("%s: %q\n", name, fmt.Sprint(p.Default))
				if p.Type != "string" {
					text = strings.Replace(text, fmt.Sprintf("%q", fmt.Sprint(p.Default)), fmt.Sprint(p.Default), 1)
				}
			}
		}
		return text
	}
	decode := func(text string, into any) {
		t.Helper()
		if _, err := yamlfile.Decode("defaults", []byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	same := func(documented, is any) {
		t.Helper()
		if !reflect.DeepEqual(documented, is) {
			t.Errorf("documented %+v, is %+v", documented, is)
		}
	}
	var cfg Config
	schema := schemaOf(t, reflect.TypeFor[Config](), all)
	decode(literals(schema), &cfg)
	cfg.URL = Config{}.withDefaults().URL // given in words
	same(cfg, Config{}.withDefaults())

	var r, is rule.Rule
	decode(literals(schemaOf(t, reflect.TypeFor[rule.Rule](), all)), &r)
	is.WithDefaults()
	is.Zone = "UTC" // the package's name of the empty one
	same(r, is)

	var topic Topic
	decode(literals(schemaOf(t, reflect.TypeFor[Topic](), all)), &topic)
	if topic.Criticality != (&Topic{}).criticality() {
		t.Errorf("documented %q, is %q", topic.Criticality, (&Topic{}).criticality())
	}
	decode(literals(schemaOf(t, reflect.TypeFor[Thresholds](), all)), &topic.Alerts)
	if want := (&Topic{}).settings().Thresholds; topic.settings().Thresholds != want {
		t.Errorf("documented %+v, is %+v", topic.settings().Thresholds, want)
	}

	var kept Retention
	decode(literals(schemaOf(t, reflect.TypeFor[Retention](), all)), &kept)
	same(kept, Retention{}.withDefaults())
}
