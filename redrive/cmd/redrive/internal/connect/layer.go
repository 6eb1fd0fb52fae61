package connect

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/internal/redact"
)

// A layer is one place where settings come from. It returns a setting's text and where the text
// stands, in the user's words: "--brokers", "SIDING_BROKERS", "brokers of profile staging". Without
// a place the layer does not have the setting.
type layer func(name string) (text, from string)

// A value is a setting's text, and where it comes from.
type value struct {
	text string
	from string // see [layer]
	rank int    // of its layer, 0 is the flags
}

func (v value) given() bool { return v.from != "" }

// commandLine is the layer of flags.
func commandLine(set *pflag.FlagSet) layer {
	return func(name string) (text, from string) {
		f := set.Lookup(name)
		if f == nil || !f.Changed {
			return "", ""
		}
		if several, err := set.GetStringArray(name); err == nil {
			return strings.Join(several, "\n"), "--" + name
		}
		return f.Value.String(), "--" + name
	}
}

// variables is the layer of the environment. An empty variable counts as none.
func variables(getenv func(string) string) layer {
	return func(name string) (text, from string) {
		if text = getenv(Variable(name)); text != "" {
			from = Variable(name)
		}
		return text, from
	}
}

// profile is the layer of one of the configuration file's profiles. A secret stands in the variable
// that the profile names.
func profile(name string, values map[string]string, getenv func(string) string) layer {
	return func(setting string) (text, from string) {
		if text, ok := values[setting]; ok {
			return text, setting + " of profile " + name
		}
		if variable, ok := values[setting+envSuffix]; ok {
			return getenv(variable), setting + envSuffix + " of profile " + name
		}
		return "", ""
	}
}

// layers are all of them. The first one that has a setting wins.
type layers []layer

// profileRank is the place of the profile among the layers.
const profileRank = 2

func (ls layers) get(name string) value {
	for rank, l := range ls {
		if text, from := l(name); from != "" {
			return value{text: text, from: from, rank: rank}
		}
	}
	return value{}
}

// all returns what each layer has of a setting that takes several values.
func (ls layers) all(name string) (all []redact.Text) {
	for _, l := range ls {
		if text, from := l(name); from != "" {
			for one := range strings.SplitSeq(text, "\n") {
				all = append(all, redact.Text{Text: one, From: from})
			}
		}
	}
	return all
}

func (ls layers) secret(name string) (Secret, error) {
	for rank, l := range ls {
		text, direct := l(name)
		file, from := l(name + fileSuffix)
		switch {
		case direct != "" && from != "":
			return Secret{}, fmt.Errorf("%s and %s are both set: unset one", direct, from)
		case direct != "" && text == "":
			// Not quoted: it may be the secret itself, put there by mistake.
			return Secret{}, fmt.Errorf("%s: the variable that it names is not set; it takes a variable's name, not the secret", direct)
		case direct != "":
			return Secret{value: value{text: text, from: direct, rank: rank}}, nil
		case from != "":
			return Secret{value: value{from: from, rank: rank}, file: file}, nil
		}
	}
	return Secret{}, nil
}
