package where

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Expression decides about letters, in the language of expr-lang.org. A letter on which it fails
// does not match, and is counted: a value that is no JSON, a field of nothing, text compared with a
// number. An Expression is for one goroutine at a time.
type Expression struct {
	program *vm.Program
	machine vm.VM
	json    bool // it asks for the value

	patterns []pattern
	work     int // of matches, on the letter
	steps    int // of loops, on the letter

	// Failed counts the letters on which the expression failed. First is the error on the first of
	// them, which may quote the letter, and FirstAt that letter's place.
	Failed  int
	First   error
	FirstAt string
}

// facts is what an expression can ask for.
type facts struct {
	Class       string `expr:"class"`
	Fingerprint string `expr:"fingerprint"`
	Reason      string `expr:"reason"`
	Group       string `expr:"group"`
	Message     string `expr:"message"`
	Attempts    int    `expr:"attempts"`
	Redrives    int    `expr:"redrives"`

	// Topic is the original one; partition and offset are the letter's own.
	Topic     string `expr:"topic"`
	Partition int    `expr:"partition"`
	Offset    int    `expr:"offset"`

	FailedAt      time.Time `expr:"failedAt"`
	FirstFailedAt time.Time `expr:"firstFailedAt"`
	Timestamp     time.Time `expr:"timestamp"`

	Key     any            `expr:"key"` // nil, or a string
	Text    string         `expr:"text"`
	Value   any            `expr:"value"`
	Headers map[string]any `expr:"headers"` // strings; of several with one name the last
}

// Compile reads an expression. Its error names the column. It refuses expressions whose work or
// memory might grow beyond the size of a letter: docs/redrive-reference.md says which.
func Compile(text string) (*Expression, error) {
	if n := utf8.RuneCountInString(text); n > mostText {
		return nil, fmt.Errorf("the expression has %d characters, and at most %d are allowed", n, mostText)
	}
	if err := checkPatterns(text); err != nil {
		return nil, placed(err)
	}
	w := &Expression{}
	g := &guard{matches: w.matchesNode}
	program, err := expr.Compile(text, expr.Env(facts{}), expr.AsBool(), expr.Patch(g),
		expr.Function(matchesName, w.matches, new(func(string, int) bool)), expr.Function(turnName, w.turn, new(func(int) bool)))
	if g.err != nil {
		return nil, g.err
	}
	if err != nil {
		return nil, placed(err)
	}
	w.program = program
	node := program.Node()
	ast.Walk(&node, w)
	return w, nil
}

// placed returns an error that names the column. The library's own text has the place too, as
// (line:column), and the snippet points at it.
func placed(err error) error {
	if e, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("column %d: %s%s", e.Column+1, e.Message, e.Snippet)
	}
	return err
}

// Visit finds whether the expression asks for the value: reading JSON costs more than everything
// else.
func (w *Expression) Visit(node *ast.Node) {
	if id, ok := (*node).(*ast.IdentifierNode); ok && (id.Value == "value" || id.Value == "$env") {
		w.json = true
	}
}

// Match reports whether a letter fits.
func (w *Expression) Match(l *dlq.Letter) bool {
	env := factsOf(l)
	w.work, w.steps = 0, 0
	var err error
	if w.json {
		env.Value, err = parseJSON(l.Record.Value)
	}
	var result any
	if err == nil {
		result, err = w.machine.Run(w.program, env)
	}
	yes, ok := result.(bool)
	if err == nil && !ok {
		err = fmt.Errorf("the result is %v, neither true nor false", result)
	}
	if err != nil {
		w.Failed++
		if w.First == nil {
			w.FirstAt = fmt.Sprintf("%s/%d/%d", l.Record.Topic, l.Record.Partition, l.Record.Offset)
			w.First = fmt.Errorf("%s: %w", w.FirstAt, failed(err))
		}
		return false
	}
	return yes
}

func factsOf(l *dlq.Letter) facts {
	m, r := &l.Meta, l.Record
	f := facts{
		Class: m.Class, Fingerprint: m.Fingerprint, Reason: string(m.Reason), Group: m.Group, Message: m.Message,
		Attempts: m.Attempts, Redrives: m.Redrive.Count, Topic: m.Original.Topic, Partition: int(r.Partition), Offset: int(r.Offset),
		FailedAt: m.FailedAt, FirstFailedAt: m.FirstFailedAt, Timestamp: m.Original.Timestamp,
		Text: string(r.Value), Headers: make(map[string]any, len(r.Headers)),
	}
	if f.Timestamp.IsZero() {
		f.Timestamp = r.Timestamp
	}
	if r.Key != nil {
		f.Key = string(r.Key)
	}
	for key, value := range headers.Values(r.Headers) {
		f.Headers[key] = string(value)
	}
	return f
}

// parseJSON keeps whole numbers whole: as floating point, two order numbers of 17 digits could be
// one.
func parseJSON(b []byte) (v any, err error) {
	if !json.Valid(b) {
		return nil, errors.New("the value is no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return numbers(v), err
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, err := v.Float64()
		if err != nil {
			return string(v)
		}
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
