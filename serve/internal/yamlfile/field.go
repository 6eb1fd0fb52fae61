package yamlfile

import (
	"reflect"
	"strings"
)

type field struct {
	name string
	is   reflect.Type
}

// fieldsOf returns the fields of a struct that have a name in the file, in the struct's order. The
// keys of an inline field stand beside those of the struct.
func fieldsOf(t reflect.Type) (all []field) {
	for f := range t.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			all = append(all, fieldsOf(f.Type)...)
		}
		if name != "" && name != "-" {
			all = append(all, field{name, f.Type})
		}
	}
	return all
}
