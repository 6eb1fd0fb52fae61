package where

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Bounds of expressions. A letter's value may have a megabyte, and a server evaluates what people
// send: so the work is bounded by the size of the value times that of the expression, and so is the
// memory.
const (
	mostText  = 4096   // characters
	mostSums  = 16     // additions, which may join texts
	mostRange = 10_000 // numbers
	mostEach  = 100    // numbers, for each element of a list
)

// refused are functions that make much of little, or compare each element with each other.
var refused = []string{"repeat", "reduce", "join", "replace", "uniq", "toJSON", "toBase64"}

// large are the facts that may be as large as a letter.
var large = []string{"value", "text", "headers", "key", "message", "$env"}

// guard finds what an expression must not have.
type guard struct {
	err  error
	sums int
	// matches returns what stands for the operator matches between a text and a pattern.
	matches func(text ast.Node, pattern string) (ast.Node, error)
}

func (g *guard) refuse(at ast.Node, format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf("column %d: %s", at.Location().From+1, fmt.Sprintf(format, args...))
	}
}

// Visit is called for each node, after those below it.
func (g *guard) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		g.refuse(n, "let and ; cannot be used here")
	case *ast.BuiltinNode:
		if slices.Contains(refused, n.Name) {
			g.refuse(n, "%s cannot be used here", n.Name)
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "..":
			g.ranges(n, mostRange)
		case "+":
			if g.sums++; g.sums > mostSums {
				g.refuse(n, "there are more than %d additions", mostSums)
			}
		case "matches":
			pattern, ok := n.Right.(*ast.StringNode)
			if !ok {
				g.refuse(n, "matches takes a pattern in quotes")
				return
			}
			bounded, err := g.matches(n.Left, pattern.Value)
			if err != nil {
				g.refuse(n, "%v", err)
				return
			}
			ast.Patch(node, bounded)
		}
	case *ast.PredicateNode:
		e := &elementGuard{guard: g}
		ast.Walk(&n.Node, e)
		n.Node = loopNode(n.Node, e.steps)
	}
}

// ranges refuses a range that is too long, or whose length is not known.
func (g *guard) ranges(n *ast.BinaryNode, most int) {
	from, ok1 := n.Left.(*ast.IntegerNode)
	to, ok2 := n.Right.(*ast.IntegerNode)
	if !ok1 || !ok2 || to.Value-from.Value >= most {
		g.refuse(n, "a range here has at most %d numbers, and both ends are written out", most)
	}
}

// elementGuard finds what must not be asked of each element of a list.
type elementGuard struct {
	*guard
	steps int // of what is asked
}

// Visit is called for each node, after those below it.
func (e *elementGuard) Visit(node *ast.Node) {
	e.steps++
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if slices.Contains(large, n.Value) {
			e.refuse(n, "%s cannot be used for each element of a list", n.Value)
		}
	case *ast.BinaryNode:
		if n.Operator == ".." {
			e.ranges(n, mostEach)
		}
	}
}
