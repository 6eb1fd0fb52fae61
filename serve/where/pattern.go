package where

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
)

// Bounds of matches. A pattern has a step for each character, and a repetition has those of what it
// repeats as many times as it may: so its program's size is bounded, and so is what each byte of a
// text costs.
const (
	mostSteps = 1000    // of all patterns of an expression
	mostWork  = 1 << 25 // bytes of texts times steps, for each letter: up to a second
)

// matchesName is the function in place of the operator matches. No expression can have the name.
const matchesName = "matches "

// pattern is what the operator matches compares with.
type pattern struct {
	*regexp.Regexp
	steps int
}

// patterns counts the steps of all patterns of an expression.
type patterns struct {
	guard
	steps int
}

// checkPatterns refuses patterns whose programs are too large. It comes before the library checks
// an expression, which compiles them.
func checkPatterns(text string) error {
	tree, err := parser.ParseWithConfig(text, conf.CreateNew())
	if err != nil {
		return err
	}
	p := &patterns{}
	ast.Walk(&tree.Node, p)
	return p.err
}

// Visit is called for each node, after those below it.
func (p *patterns) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || n.Operator != "matches" {
		return
	}
	if s, ok := n.Right.(*ast.StringNode); ok {
		if re, err := syntax.Parse(s.Value, syntax.Perl); err != nil {
			p.refuse(n, "%v", err)
		} else {
			p.steps += stepsOf(re)
		}
	}
	if p.steps > mostSteps {
		p.refuse(n, "the patterns of matches have more than %d steps: each character is one, as often as it may be repeated", mostSteps)
	}
}

// stepsOf returns how many steps a pattern has, and no more than one above the bound.
func stepsOf(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpRepeat:
		n = max(re.Max, re.Min, 1) * stepsOf(re.Sub[0])
		if re.Max != re.Min {
			n += max(re.Max, re.Min) - re.Min + 1 // each may be left out
		}
	default:
		for _, sub := range re.Sub {
			n = min(n+stepsOf(sub), mostSteps+1)
		}
	}
	return min(n, mostSteps+1)
}

// matchesNode returns a node that matches a text with one of the expression's patterns.
func (w *Expression) matchesNode(text ast.Node, compare string) (ast.Node, error) {
	parsed, err := syntax.Parse(compare, syntax.Perl)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(compare)
	if err != nil {
		return nil, err
	}
	w.patterns = append(w.patterns, pattern{re, stepsOf(parsed)})
	return &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: matchesName},
		Arguments: []ast.Node{text, &ast.IntegerNode{Value: len(w.patterns) - 1}},
	}, nil
}

// matches is the operator: of a text, and the number of a pattern. Nothing matches no pattern.
func (w *Expression) matches(params ...any) (any, error) {
	if params[0] == nil {
		return false, nil
	}
	text, ok := params[0].(string)
	if !ok {
		return nil, fmt.Errorf("matches takes a text, not %T", params[0])
	}
	p := w.patterns[params[1].(int)]
	if w.work += (len(text) + 1) * p.steps; w.work > mostWork {
		return nil, errors.New("the text is too long for matches: take a shorter pattern, or contains")
	}
	return p.MatchString(text), nil
}
