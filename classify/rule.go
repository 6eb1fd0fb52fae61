package classify

import (
	"fmt"
	"reflect"
	"regexp"
)

// Rule gives matching errors a verdict and a class. [Is], [Type], [When] and [Message] make rules.
// Any other Rule matches nothing, as does a rule that one of them made from nil:
// [Classifier.Validate] reports it.
type Rule struct {
	// Verdict of a matching error, unless the handler marked the error with one.
	Verdict Verdict
	// Class of a matching error, unless the handler named one. If empty, the built-in rules decide
	// the class. It is cleaned as by CleanClass; [Classifier.Validate] reports one that has to be.
	Class string

	match func(err error, message string) bool
	lacks string // what was nil when the rule was made
}

// Is matches errors that have target in their chain, as errors.Is does.
func Is(target error, v Verdict, class string) Rule {
	if target == nil {
		return Rule{Verdict: v, Class: class, lacks: "the target of Is"}
	}
	byValue := reflect.TypeOf(target).Comparable()
	return Rule{Verdict: v, Class: class, match: func(err error, _ string) bool {
		left := maxErrors
		return anyIn(err, &left, func(e error) bool {
			return byValue && e == target || matchesIs(e, target)
		})
	}}
}

// Type matches errors that have an E in their chain, as errors.As does. E is a
// concrete type or an interface.
func Type[E error](v Verdict, class string) Rule {
	return Rule{Verdict: v, Class: class, match: func(err error, _ string) bool {
		left := maxErrors
		return anyIn(err, &left, func(e error) bool {
			if _, ok := e.(E); ok {
				return true
			}
			as, ok := e.(interface{ As(any) bool })
			return ok && as.As(new(E))
		})
	}}
}

// When matches the errors for which f returns true. f must be safe for concurrent use. If f panics
// the rule does not match.
func When(f func(error) bool, v Verdict, class string) Rule {
	if f == nil {
		return Rule{Verdict: v, Class: class, lacks: "the function of When"}
	}
	return Rule{Verdict: v, Class: class, match: func(err error, _ string) bool { return f(err) }}
}

// Message matches errors whose text matches re. It is the last resort, for libraries whose errors
// differ only in their text.
func Message(re *regexp.Regexp, v Verdict, class string) Rule {
	if re == nil {
		return Rule{Verdict: v, Class: class, lacks: "the regular expression of Message"}
	}
	return Rule{Verdict: v, Class: class, match: func(_ error, message string) bool {
		return re.MatchString(message)
	}}
}

// problems lists why the rule cannot do what its author meant.
func (r *Rule) problems() (all []string) {
	switch {
	case r.lacks != "":
		all = append(all, r.lacks+" is nil, so the rule matches nothing: pass one, or remove the rule")
	case r.match == nil:
		all = append(all, "the rule has no condition, so it matches nothing: make it with classify.Is, Type, When or Message")
	}
	if problem := r.Verdict.problem("Verdict"); problem != "" {
		all = append(all, problem)
	}
	if r.Class != "" && !ValidClass(r.Class) {
		all = append(all, fmt.Sprintf("Class %q is no class: at most %d characters of [A-Za-z0-9_.*/-], such as %q", r.Class, MaxClass, CleanClass(r.Class)))
	}
	return all
}

func (r *Rule) matches(err error, message string) (ok bool) {
	if r.match == nil {
		return false
	}
	defer survive()
	return r.match(err, message)
}

// anyIn walks err depth first. The standard library's errors.Is and errors.As follow a cyclic chain
// for ever; anyIn stops after left errors.
func anyIn(err error, left *int, f func(error) bool) bool {
	for err != nil && *left > 0 {
		*left--
		if safely(f, err) {
			return true
		}
		one, many := unwrap(err)
		for _, e := range many {
			if anyIn(e, left, f) {
				return true
			}
		}
		err = one
	}
	return false
}

// safely counts a panic in a foreign Is, As or == as no match.
func safely(f func(error) bool, err error) (ok bool) {
	defer survive()
	return f(err)
}

func matchesIs(err, target error) bool {
	is, ok := err.(interface{ Is(error) bool })
	return ok && is.Is(target)
}
