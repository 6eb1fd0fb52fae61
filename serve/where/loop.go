package where

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
)

// mostTurnSteps bounds the loops of an expression, for each letter: up to a second or two. Each
// element costs as many steps as what is asked of it has names, numbers, operators and functions. A
// loop within a loop multiplies, and only the lists say by how much.
const mostTurnSteps = 10_000_000

// turnName is the function that counts a turn of a loop. No expression can have the name.
const turnName = "turn "

// loopNode returns a node that counts a turn with so many steps, and then has the value and the
// type of a predicate.
func loopNode(predicate ast.Node, steps int) ast.Node {
	count := &ast.CallNode{Callee: &ast.IdentifierNode{Value: turnName}, Arguments: []ast.Node{&ast.IntegerNode{Value: steps}}}
	n := &ast.ConditionalNode{Cond: count, Exp1: predicate, Exp2: &ast.NilNode{}}
	n.SetLocation(predicate.Location())
	count.SetLocation(predicate.Location())
	return n
}

// turn counts a turn of a loop. It returns true.
func (w *Expression) turn(params ...any) (any, error) {
	if w.steps += params[0].(int); w.steps > mostTurnSteps {
		return nil, fmt.Errorf("the loops take more than %d steps, the most for one letter: "+
			"each element costs one for each name, number, operator and function that is asked of it, and a loop within a loop multiplies", mostTurnSteps)
	}
	return true, nil
}

// failed returns an error of an evaluation that names the column, and what is allowed.
func failed(err error) error {
	e, ok := errors.AsType[*file.Error](err)
	if !ok {
		return err
	}
	if strings.Contains(e.Message, "memory budget exceeded") {
		return fmt.Errorf("column %d: ranges and lists make more than %d elements, the most for one letter", e.Column+1, conf.DefaultMemoryBudget)
	}
	return fmt.Errorf("column %d: %s", e.Column+1, e.Message)
}
