package mergepatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Apply returns target with the patch laid over it. Members that the patch adds come last, in the patch's order. White
// space between the members of a changed object is left out.
//
// Text that is no JSON is an error, and so is a patch that is nested deeper than 100 levels. So is a member that an object has twice, since readers differ in which of the two they
// take: anywhere in the patch, and in each object of the target that the patch changes.
func Apply(target, patch []byte) ([]byte, error) {
	if err := Check(patch); err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}
	if err := valid(target); err != nil {
		return nil, fmt.Errorf("the value %w", err)
	}
	return merge(nil, target, patch, "")
}

// maxDepth is how many objects and arrays of a patch may be in one another. Each level is read once for itself and once with each that it
// is in, of the value as well, so without a bound the time would grow with the square of the depth.
const maxDepth = 100

// Check says what is wrong with a patch: that it is no JSON, is nested too deep, or has a member twice.
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

// merge is the RFC's MergePatch. It appends the result to out. A target of nil is none.
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

// space is what may stand between the tokens of JSON.
const space = " \t\r\n"

// kindOf is the first character of a value, which tells what it is: 'n' for null; 0 where there is no value.
func kindOf(text json.RawMessage) byte {
	if text = bytes.TrimLeft(text, space); len(text) > 0 {
		return text[0]
	}
	return 0
}

// object is a JSON object in its order.
type object struct {
	members []member
	index   map[string]int
}

type member struct {
	name  string
	key   string // the name as it is written, with its quotes
	value json.RawMessage
}

// get is the value of a member; nil where there is none of that name.
func (o *object) get(name string) json.RawMessage {
	if i, ok := o.index[name]; ok {
		return o.members[i].value
	}
	return nil
}

// membersOf takes an object apart, which is valid JSON.
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

// checkMembers says which member is there twice, at any depth, or that the text, which is on a level, is nested too deep.
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

// pointer names a place in JSON, as RFC 6901 has it.
type pointer string

func (p pointer) to(name string) pointer {
	return p + "/" + pointer(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}
