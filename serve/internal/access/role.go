package access

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/sidingkafka/siding/serve/internal/yamlfile"
)

// Role is what people may do. Each includes those before it.
type Role uint8

// The roles.
const (
	None     Role = iota
	Viewer        // sees all but values and headers of records
	Reader        // sees these, too
	Operator      // redrives, discards, reopens
	Admin         // changes rules, prunes
)

var names = []string{"none", "viewer", "reader", "operator", "admin"}

// String returns the role's name.
func (r Role) String() string { return names[r] }

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(names, name); i > 0 {
		return Role(i), nil
	}
	return None, fmt.Errorf("%q is not a role: viewer, reader, operator or admin", name)
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Grant gives a role on topics.
type Grant struct {
	// Role is viewer, reader, operator or admin. Required.
	Role Role `yaml:"role"`
	// Topics are patterns of dead-letter topics' names. Default all.
	Topics []string `yaml:"topics"`
}

// check returns what is wrong with a grant at a key.
func (g *Grant) check(key string) error {
	var all []error
	if g.Role == None {
		all = append(all, &yamlfile.KeyError{Key: key + ".role", Problem: "required: viewer, reader, operator or admin"})
	}
	if g.Topics != nil && len(g.Topics) == 0 {
		all = append(all, &yamlfile.KeyError{Key: key + ".topics", Problem: "it is empty: leave it out for all topics"})
	}
	for i, t := range g.Topics {
		if _, err := path.Match(t, ""); err != nil || t == "" {
			all = append(all, &yamlfile.KeyError{
				Key: fmt.Sprintf("%s.topics[%d]", key, i), Problem: fmt.Sprintf("%q is not a pattern: * is any text, ? any character, [abc] one of these", t),
			})
		}
	}
	return errors.Join(all...)
}

func (g *Grant) covers(topic string) bool {
	return len(g.Topics) == 0 || slices.ContainsFunc(g.Topics, func(t string) bool {
		ok, _ := path.Match(t, topic)
		return ok
	})
}

// Identity is somebody, or something, that sends requests.
type Identity struct {
	// Name is written to ledgers, as who did it.
	Name   string
	Grants []Grant
}

// Rights stands for all that the identity may do: two with the same rights see the same.
func (i *Identity) Rights() string { return fmt.Sprintf("%+v", i.Grants) }

// On returns the highest role that the identity has on a topic.
func (i *Identity) On(topic string) (role Role) {
	for _, g := range i.Grants {
		if g.covers(topic) {
			role = max(role, g.Role)
		}
	}
	return role
}
