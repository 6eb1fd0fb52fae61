package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// explainFaults has a problem with a request say what is allowed. The library's words are for
// readers of its code.
func explainFaults(p *huma.ErrorModel, o *huma.Operation, schemas huma.Registry) {
	if p.Detail == "request body is required" {
		p.Detail = "the request lacks its body: a JSON object, at least {}"
	}
	var faults []*huma.ErrorDetail
	var texts []string
	for _, is := range p.Errors {
		fault := *is
		beyond, ofGo := strings.CutPrefix(fault.Message, "json: cannot unmarshal number ")
		switch {
		case ofGo:
			number, _, _ := strings.Cut(beyond, " ")
			fault.Message = number + " is out of range, or not written as a whole number"
		case p.Status == http.StatusUnsupportedMediaType:
			_, sent, _ := strings.Cut(fault.Message, ": ")
			fault.Message = fmt.Sprintf("the Content-Type is %q: it has to be application/json", sent)
		case p.Status == http.StatusBadRequest && fault.Location == "body":
			fault.Message = "it is no JSON: " + fault.Message
		default:
			fault.Message = allowed(&fault, o, schemas)
		}
		faults, texts = append(faults, &fault), append(texts, fault.Location+": "+fault.Message)
	}
	if p.Errors = faults; len(faults) > 0 {
		slices.Sort(texts)
		p.Detail = strings.Join(texts, "; ")
	}
}

// allowed says what is allowed in place of a value.
func allowed(fault *huma.ErrorDetail, o *huma.Operation, schemas huma.Registry) string {
	for library, ours := range map[string]string{
		"expected number <= ":         "at most %s",
		"expected number >= ":         "at least %s",
		"expected length <= ":         "at most %s characters",
		"expected length >= ":         "at least %s character",
		"expected array length <= ":   "at most %s elements",
		"expected required property ": "the field %s is required",
	} {
		if text, ok := strings.CutPrefix(fault.Message, library); ok {
			text = strings.TrimSuffix(text, " to be present")
			if n, err := strconv.ParseFloat(text, 64); err == nil { // 1e+06
				text = strconv.FormatFloat(n, 'f', -1, 64)
			}
			return fmt.Sprintf(ours, text)
		}
	}
	switch fault.Message {
	case "unknown query parameter":
		var names []string
		for _, p := range o.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		return noneSuch("parameter", names)
	case "unexpected property":
		return noneSuch("field", fieldsAt(fault.Location, o, schemas))
	case "invalid integer", "expected integer":
		return "it has to be a whole number"
	case "invalid boolean", "expected boolean":
		return "it has to be true or false"
	}
	if strings.HasPrefix(fault.Message, "invalid date/time") || strings.HasSuffix(fault.Message, "RFC 3339 date-time") {
		return "it has to be a time of RFC 3339, as in 2026-11-23T17:00:00Z"
	}
	return fault.Message
}

func noneSuch(what string, names []string) string {
	if len(names) == 0 {
		return "there is no such " + what + ", and none at all"
	}
	return fmt.Sprintf("there is no such %s; allowed are %s", what, strings.Join(names, ", "))
}

// fieldsAt returns the names of the fields of an object in a body, of which one is at a location:
// as in body.edit.setHeaders[0].key.
func fieldsAt(location string, o *huma.Operation, schemas huma.Registry) []string {
	if o.RequestBody == nil || o.RequestBody.Content["application/json"] == nil {
		return nil
	}
	resolved := func(s *huma.Schema) *huma.Schema {
		if s != nil && s.Ref != "" {
			return schemas.SchemaFromRef(s.Ref)
		}
		return s
	}
	at := resolved(o.RequestBody.Content["application/json"].Schema)
	path := strings.Split(location, ".")
	for _, name := range path[1 : len(path)-1] {
		name, _, isElement := strings.Cut(name, "[")
		if at != nil {
			at = resolved(at.Properties[name])
		}
		if isElement && at != nil {
			at = resolved(at.Items)
		}
	}
	if at == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(at.Properties))
}
