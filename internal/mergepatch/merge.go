package mergepatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Apply returns target with the patch applied. Added members come last, in the patch's order. White
// space between the members of a changed object is dropped.
//
// It is an error if a text is not JSON, or the patch is nested deeper than 100 levels. A member
// that an object has twice is an error too, since readers differ in which of the two they use. That
// holds for all of the patch, and for each object of the target that the patch changes.
func Apply(target, patch []byte) ([]byte, error) {
	if err := Check(patch); err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}
	if err := valid(target); err != nil {
		return nil, fmt.Errorf("the value %w", err)
	}
	return merge(nil, target, patch, "")
}

// ApplyToObject is Apply, and refuses a target or a patch that is no object: for those the RFC
// replaces the whole value, which is an accident with a thousand records.
func ApplyToObject(target, patch []byte) ([]byte, error) {
	merged, err := Apply(target, patch)
	switch {
	case err != nil:
		return nil, err
	case kindOf(target) != '{':
		return nil, fmt.Errorf("the value %w", errNoObject)
	case kindOf(patch) != '{':
		return nil, fmt.Errorf("the patch %w", errNoObject)
	}
	return merged, nil
}

// CheckObject is Check, and refuses a patch that is no object.
func CheckObject(patch []byte) error {
	if err := Check(patch); err != nil {
		return err
	}
	if kindOf(patch) != '{' {
		return errNoObject
	}
	return nil
}

var errNoObject = errors.New("is no JSON object, so a merge patch would replace it as a whole")

// maxDepth bounds the nesting of a patch. Each level is read once for itself and once for each
// level around it, in the patch and in the value. Without a bound the time would grow with the
// square of the depth.
const maxDepth = 100

// Check returns an error if a patch is not JSON, is nested too deep, or has a member twice.
func Check(patch []byte) error {
	if err := valid(patch); err != nil {
		return err
	}
	return checkMembers(patch, "", 1)
}

func valid(text []byte) error {
	var raw json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return fmt.Errorf("is no JSON: %w", err)
	}
	return nil
}

// merge is the RFC's MergePatch. It appends the result to out. A nil target means no target.
func merge(out []byte, target, patch json.RawMessage, at pointer) ([]byte, error) {
	if kindOf(patch) != '{' {
		return append(out, bytes.Trim(patch, space)...), nil
	}
	changes, err := membersOf(patch, at)
	if err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}
	var before object
	if kindOf(target) == '{' {
		if before, err = membersOf(target, at); err != nil {
			return nil, fmt.Errorf("the value %w", err)
		}
	}
	begin := len(out)
	put := func(key string, target, patch json.RawMessage, name string) (err error) {
		if len(out) > begin {
			out = append(out, ',')
		} else {
			out = append(out, '{')
		}
		out = append(append(out, key...), ':')
		if patch == nil {
			out = append(out, target...)
			return nil
		}
		out, err = merge(out, target, patch, at.to(name))
		return err
	}
	for _, m := range before.members {
		change := changes.get(m.name)
		if kindOf(change) == 'n' {
			continue
		}
		if err := put(m.key, m.value, change, m.name); err != nil {
			return nil, err
		}
	}
	for _, m := range changes.members {
		if before.get(m.name) != nil || kindOf(m.value) == 'n' {
			continue
		}
		if err := put(m.key, nil, m.value, m.name); err != nil {
			return nil, err
		}
	}
	if len(out) == begin {
		out = append(out, '{')
	}
	return append(out, '}'), nil
}

// space has the characters that may stand between the tokens of JSON.
const space = " \t\r\n"

// kindOf returns the first character of a value, which determines its kind: 'n' for null; 0 without
// a value.
func kindOf(text json.RawMessage) byte {
	if text = bytes.TrimLeft(text, space); len(text) > 0 {
		return text[0]
	}
	return 0
}

// object is a JSON object with its members in order.
type object struct {
	members []member
	index   map[string]int
}

type member struct {
	name  string
	key   string // the name as written, with its quotes
	value json.RawMessage
}

// get returns the value of a member; nil if there is none of that name.
func (o *object) get(name string) json.RawMessage {
	if i, ok := o.index[name]; ok {
		return o.members[i].value
	}
	return nil
}

// membersOf splits an object, which is valid JSON, into its members.
func membersOf(text json.RawMessage, at pointer) (o object, err error) {
	o.index = map[string]int{}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return o, err
	}
	for d.More() {
		begin := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return o, err
		}
		name, _ := token.(string)
		m := member{name: name, key: string(bytes.TrimLeft(text[begin:d.InputOffset()], ","+space))}
		if err := d.Decode(&m.value); err != nil {
			return o, err
		}
		if _, twice := o.index[name]; twice {
			return o, fmt.Errorf("has the member %s twice", at.to(name))
		}
		o.index[name] = len(o.members)
		o.members = append(o.members, m)
	}
	return o, nil
}

// checkMembers returns an error if a member occurs twice, at any depth, or the text, which is at
// the given level, is nested too deep.
func checkMembers(text json.RawMessage, at pointer, level int) error {
	kind := kindOf(text)
	if (kind == '{' || kind == '[') && level > maxDepth {
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	switch kind {
	case '{':
		o, err := membersOf(text, at)
		if err != nil {
			return err
		}
		for _, m := range o.members {
			if err := checkMembers(m.value, at.to(m.name), level+1); err != nil {
				return err
			}
		}
	case '[':
		var all []json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
		for i, value := range all {
			if err := checkMembers(value, at.to(fmt.Sprint(i)), level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointer is a JSON pointer (RFC 6901).
type pointer string

func (p pointer) to(name string) pointer {
	return p + "/" + pointer(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}
