package monitoring

import (
	"fmt"
	"maps"

	"github.com/prometheus/prometheus/promql/parser"
)

// Check reads a query as Prometheus does, and returns the labels of its result. It is an error if a
// metric or a label is none of these series, or if the query has a part of which the labels are not
// known: this knows what the alerts and boards use.
func (s Series) Check(query string) (map[string]bool, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	of, err := s.labels(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return of, nil
}

func (s Series) labels(expr parser.Expr) (labels, error) {
	switch e := expr.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return labels{}, nil
	case *parser.ParenExpr:
		return s.labels(e.Expr)
	case *parser.UnaryExpr:
		return s.labels(e.Expr)
	case *parser.MatrixSelector:
		return s.labels(e.VectorSelector)
	case *parser.VectorSelector:
		is, ok := s[e.Name]
		if !ok {
			return nil, fmt.Errorf("no metric is named %q", e.Name)
		}
		for _, m := range e.LabelMatchers {
			if err := is.and("__name__").lacks(e.Name, m.Name); err != nil {
				return nil, err
			}
		}
		return is, nil
	case *parser.AggregateExpr:
		return s.aggregated(e)
	case *parser.Call:
		return s.called(e)
	case *parser.BinaryExpr:
		return s.combined(e)
	}
	return nil, fmt.Errorf("what is %T?", expr)
}

func (s Series) aggregated(e *parser.AggregateExpr) (labels, error) {
	is, err := s.labels(e.Expr)
	if err != nil {
		return nil, err
	}
	if err := is.lacks(e.Expr.String(), e.Grouping...); err != nil {
		return nil, err
	}
	if e.Op == parser.TOPK || e.Op == parser.BOTTOMK {
		return is, nil
	}
	if !e.Without {
		return labels{}.and(e.Grouping...), nil
	}
	is = maps.Clone(is)
	for _, g := range e.Grouping {
		delete(is, g)
	}
	return is, nil
}

func (s Series) called(e *parser.Call) (labels, error) {
	all := labels{}
	for _, arg := range e.Args {
		is, err := s.labels(arg)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, is)
	}
	switch e.Func.Name {
	case "histogram_quantile":
		if err := all.lacks(e.Args[1].String(), "le"); err != nil {
			return nil, err
		}
		delete(all, "le")
	case "rate", "increase", "deriv", "time", "vector", "clamp_min", "max_over_time", "min_over_time", "last_over_time":
	default:
		return nil, fmt.Errorf("what are the labels of %s?", e.Func.Name)
	}
	return all, nil
}

func (s Series) combined(e *parser.BinaryExpr) (labels, error) {
	left, err := s.labels(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := s.labels(e.RHS)
	if err != nil {
		return nil, err
	}
	m := e.VectorMatching
	switch {
	case len(left) == 0: // a scalar, or a sum of all
		return right, nil
	case m == nil || len(right) == 0:
		return left, nil
	case m.On:
		if err := left.lacks(e.LHS.String(), m.MatchingLabels...); err != nil {
			return nil, err
		}
		if err := right.lacks(e.RHS.String(), m.MatchingLabels...); err != nil {
			return nil, err
		}
	case !maps.Equal(left, right):
		return nil, fmt.Errorf("%s and %s have not the same labels, so they never match", e.LHS, e.RHS)
	}
	if m.On && m.Card == parser.CardOneToOne && !e.Op.IsSetOperator() {
		return labels{}.and(m.MatchingLabels...), nil
	}
	return left, nil
}
