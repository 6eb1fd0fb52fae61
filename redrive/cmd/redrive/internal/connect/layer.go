package connect

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// A value is a setting's text, and where it comes from.
type value struct {
	text string
	from string // as the user knows it: "--brokers", "SIDING_BROKERS", "brokers of profile staging"
	rank int    // of its layer, 0 is the flags
}

func (v value) given() bool { return v.from != "" }

// A layer is one place where settings come from.
type layer interface {
	get(name string) (value, bool)
	// secret is the layer's secret, or what is wrong with the way that it is given.
	secret(name string) (Secret, bool, error)
}

const (
	flagRank = iota
	envRank
	profileRank
)

// flagLayer is the command line.
type flagLayer struct{ set *pflag.FlagSet }

func (l flagLayer) get(name string) (value, bool) {
	f := l.set.Lookup(name)
	if f == nil || !f.Changed {
		return value{}, false
	}
	return value{text: f.Value.String(), from: "--" + name, rank: flagRank}, true
}

func (l flagLayer) secret(name string) (Secret, bool, error) {
	file, ok := l.get(name + fileSuffix)
	return Secret{from: file.from, file: file.text, rank: flagRank}, ok, nil
}

// envLayer is the environment. An empty variable counts as none.
type envLayer struct{ lookup func(string) string }

func (l envLayer) get(name string) (value, bool) {
	key := Variable(name)
	text := l.lookup(key)
	return value{text: text, from: key, rank: envRank}, text != ""
}

func (l envLayer) secret(name string) (Secret, bool, error) {
	direct, isDirect := l.get(name)
	file, isFile := l.get(name + fileSuffix)
	switch {
	case isDirect && isFile:
		return Secret{}, false, fmt.Errorf("%s and %s are both set: unset one", direct.from, file.from)
	case isDirect:
		return Secret{from: direct.from, text: direct.text, rank: envRank}, true, nil
	}
	return Secret{from: file.from, file: file.text, rank: envRank}, isFile, nil
}

// profileLayer is a profile of the configuration file.
type profileLayer struct {
	name   string
	values map[string]string
	lookup func(string) string
}

func (l profileLayer) get(name string) (value, bool) {
	text, ok := l.values[name]
	return value{text: text, from: fmt.Sprintf("%s of profile %s", name, l.name), rank: profileRank}, ok
}

func (l profileLayer) secret(name string) (Secret, bool, error) {
	file, isFile := l.get(name + fileSuffix)
	env, isEnv := l.get(name + envSuffix)
	switch {
	case isEnv && isFile:
		return Secret{}, false, fmt.Errorf("profile %s has both %s and %s: omit one", l.name, name+envSuffix, name+fileSuffix)
	case isEnv:
		text := l.lookup(env.text)
		if text == "" {
			// Not quoted: it may be the secret itself, put there by mistake.
			return Secret{}, false, fmt.Errorf("%s: the variable that it names is not set; it takes a variable's name, not the secret", env.from)
		}
		return Secret{from: env.from, text: text, rank: profileRank}, true, nil
	}
	return Secret{from: file.from, file: file.text, rank: profileRank}, isFile, nil
}

// layers are all of them, the first one wins.
type layers []layer

func (ls layers) get(name string) value {
	for _, l := range ls {
		if v, ok := l.get(name); ok {
			return v
		}
	}
	return value{}
}

func (ls layers) secret(name string) (Secret, error) {
	for _, l := range ls {
		if s, ok, err := l.secret(name); ok || err != nil {
			return s, err
		}
	}
	return Secret{}, nil
}

// truth reads yes or no; not given is no.
func (v value) truth() (bool, error) {
	switch strings.ToLower(v.text) {
	case "true", "yes", "1", "on":
		return true, nil
	case "", "false", "no", "0", "off":
		return false, nil
	}
	return false, fmt.Errorf("%s: %q is neither true nor false", v.from, v.text)
}
