package access

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

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
		if _, err := path.Match(t, ""); err != nil || t == "" || strings.ContainsAny(t, " ,\t\n") {
			all = append(all, &yamlfile.KeyError{
				Key: fmt.Sprintf("%s.topics[%d]", key, i), Problem: fmt.Sprintf("%q is not a pattern: * is any text, ? any character, [abc] one of these; no topic has spaces or commas", t),
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

// granted returns the grants that groups have, and everybody.
func granted(of map[string][]Grant, groups []string) (all []Grant) {
	for _, g := range append(groups, "*") {
		all = append(all, of[g]...)
	}
	return all
}

// ErrNobody reports a request without valid credentials. The error around it says what is wrong.
var ErrNobody = errors.New("access")

// Identity is a person or a program that sends requests.
type Identity struct {
	// Name is written to ledgers, as who did it, and stands for the sender wherever one is counted
	// or remembered. Its first word is the way by which the server knows the sender, as in "token
	// ci". So no two senders have the same name, and none has that of what the server does by
	// itself, as in "rule gateway".
	Name   string
	Grants []Grant
}

// The ways by which the server knows a sender, besides that of [local].
const (
	byToken  = "token"
	byProxy  = "proxy"
	byOpenID = "openid"
)

// mostName bounds a name, in bytes: each entry of a ledger has that of its sender.
const mostName = 1000

// identityOf returns the identity of a name by one way.
func identityOf(way, name string, grants []Grant) *Identity {
	return &Identity{Name: way + " " + name, Grants: grants}
}

// Guest is a sender who signs in, and is not known yet. Limits count them by their address, apart
// from others who are not known.
var Guest = &Identity{Name: "guest"}

// Rights stands for all that the identity may do: two with the same rights see the same.
func (i *Identity) Rights() string { return fmt.Sprintf("%q", i.Grants) }

// On returns the highest role that the identity has on a topic.
func (i *Identity) On(topic string) (role Role) {
	for _, g := range i.Grants {
		if g.covers(topic) {
			role = max(role, g.Role)
		}
	}
	return role
}
