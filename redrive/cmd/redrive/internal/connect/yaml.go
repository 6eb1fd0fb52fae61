package connect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// yamlFile gathers what is wrong with a YAML file. The library's decoder stops at the first
// problem, and names Go types.
type yamlFile struct {
	path    string
	anchors map[string]ast.Node
	wrong   []yamlProblem
}

type yamlProblem struct {
	line int
	text string
}

// parseYAML reads a file of one document, of which it returns the root: nil where it is empty.
func parseYAML(path string) (*yamlFile, ast.Node, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	y := &yamlFile{path: path, anchors: map[string]ast.Node{}}
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // as editors of Windows write it
	parsed, err := parser.ParseBytes(b, 0, parser.AllowDuplicateMapKey())
	if at, ok := errors.AsType[yaml.Error](err); ok {
		return nil, nil, fmt.Errorf("%s:%d: %s", path, at.GetToken().Position.Line, withoutQuotes(at.GetMessage()))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s", path, withoutQuotes(err.Error()))
	}
	if len(parsed.Docs) == 0 {
		return y, nil, nil
	}
	root := y.plain(parsed.Docs[0].Body)
	return y, root, nil
}

// plain returns a node without anchors and tags, and with what its aliases stand for. An anchor is
// known after its node, so that none has itself in it.
func (y *yamlFile) plain(n ast.Node) ast.Node {
	switch is := n.(type) {
	case *ast.AnchorNode:
		n = y.plain(is.Value)
		y.anchors[is.Name.GetToken().Value] = n
	case *ast.TagNode:
		return y.plain(is.Value)
	case *ast.AliasNode:
		known, ok := y.anchors[is.Value.GetToken().Value]
		if !ok {
			y.problem(n, "unknown anchor … referenced")
		}
		return known
	case *ast.MappingNode:
		for _, v := range is.Values {
			v.Value = y.plain(v.Value)
		}
	case *ast.SequenceNode:
		for i, v := range is.Values {
			is.Values[i] = y.plain(v)
		}
	}
	return n
}

// mapping returns the values of a mapping by their keys, also those that it merges. A value that is
// empty, or null, is a mapping without keys.
func (y *yamlFile) mapping(n ast.Node) map[string]ast.Node {
	all := map[string]ast.Node{}
	if isNull(n) {
		return all
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		y.unexpected(n)
		return all
	}
	var merged []ast.Node
	lines := map[string]int{}
	for _, v := range m.Values {
		key := v.Key.GetToken()
		if first, twice := lines[key.Value]; twice {
			y.problem(v.Key, "mapping key … already defined at line %d", first)
			continue
		}
		lines[key.Value] = key.Position.Line
		if s, several := v.Value.(*ast.SequenceNode); !v.Key.IsMergeKey() {
			all[key.Value] = v.Value
		} else if several {
			merged = s.Values
		} else {
			merged = []ast.Node{v.Value}
		}
	}
	for _, other := range merged {
		for key, v := range y.mapping(other) {
			if _, has := all[key]; !has {
				all[key] = v
			}
		}
	}
	return all
}

func (y *yamlFile) unexpected(n ast.Node) {
	y.problem(n, "a name, or keys with values, is expected here")
}

func (y *yamlFile) problem(n ast.Node, format string, args ...any) {
	y.wrong = append(y.wrong, yamlProblem{lineOf(n), fmt.Sprintf(format, args...)})
}

// problems returns all of them, by line.
func (y *yamlFile) problems() error {
	slices.SortStableFunc(y.wrong, func(a, b yamlProblem) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, p := range y.wrong {
		errs = append(errs, fmt.Errorf("%s:%d: %s", y.path, p.line, p.text))
	}
	return errors.Join(errs...)
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

func isNull(n ast.Node) bool { return n == nil || n.Type() == ast.NullType }

// scalar returns the text of a single value as the file has it, and none for null.
func scalar(n ast.Node) (text string, ok bool) {
	if isNull(n) {
		return "", true
	}
	switch is := n.(type) {
	case *ast.MappingNode, *ast.SequenceNode:
		return "", false
	case *ast.LiteralNode:
		return is.Value.Value, true
	}
	return n.GetToken().Value, true
}

// joined returns the texts of a list.
func joined(n ast.Node, between string) (text string, ok bool) {
	list, ok := n.(*ast.SequenceNode)
	var texts []string
	for i := 0; ok && i < len(list.Values); i++ {
		if text, ok = scalar(list.Values[i]); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, between), ok
}

// withoutQuotes removes from an error of the YAML library what it quotes of the file.
func withoutQuotes(text string) string { return quoted.ReplaceAllString(text, "…") }

var quoted = regexp.MustCompile("'[^\n]*'|`[^\n]*`|\"[^\n]*\"")
