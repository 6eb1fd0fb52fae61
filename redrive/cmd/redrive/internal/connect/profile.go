package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DefaultFile is the configuration file below the user's configuration folder.
var DefaultFile = filepath.Join("siding", "config.yaml")

// A file of profiles:
//
//	profile: staging        # the one to use where none is asked for
//	profiles:
//	  staging:
//	    brokers: [kafka-1:9093, kafka-2:9093]
//	    tls-ca: ca.pem      # files are looked for beside this one
//	    sasl: SCRAM-SHA-512
//	    sasl-user: oncall
//	    sasl-password-env: STAGING_PASSWORD
//
// Keys are the flags' names. It is read node by node instead of into structs, since the library's errors would quote what
// stands there, and that may be a secret.
type file struct {
	path     string
	profile  string
	profiles map[string]*yaml.Node
}

// Profiles names the profiles of a configuration file, for completion.
func Profiles(path string) []string {
	f, err := readFile(path)
	if err != nil {
		return nil
	}
	return f.names()
}

func (f *file) names() []string { return slices.Sorted(maps.Keys(f.profiles)) }

func readFile(path string) (*file, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, unread(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", path, withoutQuotes(err))
	}
	f := &file{path: path, profiles: map[string]*yaml.Node{}}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return f, nil // empty
	}
	var errs []error
	for key, node := range pairs(doc.Content[0], f.complain(&errs, doc.Content[0])) {
		switch key.Value {
		case "profile":
			if node.Kind != yaml.ScalarNode {
				errs = append(errs, f.at(node, "profile is a name"))
			}
			f.profile = node.Value
		case "profiles":
			for name, settings := range pairs(node, f.complain(&errs, node)) {
				if _, twice := f.profiles[name.Value]; twice {
					errs = append(errs, f.at(name, "profile %s is there twice", name.Value))
				}
				f.profiles[name.Value] = settings
			}
		default:
			errs = append(errs, f.at(key, "%s is not known: there are profile and profiles", key.Value))
		}
	}
	return f, errors.Join(errs...)
}

// at says where in the file something is wrong.
func (f *file) at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.path, n.Line, fmt.Sprintf(format, args...))
}

func (f *file) complain(errs *[]error, n *yaml.Node) func() {
	return func() { *errs = append(*errs, f.at(n, "keys with values are expected here")) }
}

// pairs yields the keys and values of a mapping, and complains of anything else.
func pairs(n *yaml.Node, complain func()) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		n = resolved(n)
		if n.Kind != yaml.MappingNode {
			if n.Tag != "!!null" {
				complain()
			}
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], resolved(n.Content[i+1])) {
				return
			}
		}
	}
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// layer reads a profile; every problem is in the error.
func (f *file) layer(name string, lookup func(string) string) (profileLayer, error) {
	l := profileLayer{name: name, values: map[string]string{}, lookup: lookup}
	node, ok := f.profiles[name]
	if !ok {
		there := "it has none"
		if len(f.profiles) > 0 {
			there = "there are " + strings.Join(f.names(), ", ")
		}
		return l, fmt.Errorf("%s: there is no profile %q: %s", f.path, name, there)
	}
	var errs []error
	for key, n := range pairs(node, f.complain(&errs, node)) {
		text, err := f.setting(name, key, n)
		if err == nil {
			if _, twice := l.values[key.Value]; twice {
				err = f.at(key, "%s is there twice", key.Value)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if text != "" {
			l.values[key.Value] = text
		}
	}
	return l, errors.Join(errs...)
}

// setting reads one line of a profile. No error may quote a value, which can be a secret in the wrong place.
func (f *file) setting(profile string, key, n *yaml.Node) (string, error) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == key.Value })
	switch {
	case key.Value == password+envSuffix, key.Value == token+envSuffix:
	case secretive.MatchString(key.Value) && i < 0:
		instead := password
		if strings.Contains(strings.ToLower(key.Value), "token") {
			instead = token
		}
		return "", f.at(key, "profile %s: %s: a secret has no place in this file; name a file by %s, or a variable by %s", profile, key.Value, instead+fileSuffix, instead+envSuffix)
	case i < 0:
		return "", f.at(key, "profile %s: %s is not known: keys are the flags' names, as brokers or tls-ca", profile, key.Value)
	}
	var text string
	switch {
	case n.Tag == "!!null":
		return "", nil
	case n.Kind == yaml.ScalarNode:
		text = n.Value
	case n.Kind == yaml.SequenceNode && key.Value == brokers:
		var all []string
		for _, item := range n.Content {
			all = append(all, resolved(item).Value)
		}
		text = strings.Join(all, ",")
	default:
		return "", f.at(n, "profile %s: %s has one value", profile, key.Value)
	}
	if strings.Contains(text, "-----BEGIN") {
		return "", f.at(n, "profile %s: %s names a file; its content has no place here", profile, key.Value)
	}
	if i >= 0 && settings[i].file && text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(f.path), text)
	}
	return text, nil
}

// secretive is a key that looks as if its value were a secret.
var secretive = regexp.MustCompile(`(?i)passw|token|secret|credential|key-pem`)

// withoutQuotes takes out of an error of the YAML library what it quotes of the file.
func withoutQuotes(err error) string {
	return quoted.ReplaceAllString(err.Error(), "…")
}

var quoted = regexp.MustCompile("'[^\n]*'|`[^\n]*`|\"[^\n]*\"")

// choose finds the profile to use, if any: the one that is asked for, or the file's own choice. Without either, and
// where the default file is not there, it is none.
func (f *Flags) choose(env func(string) string, folder string) (layer, error) {
	path := f.File(env, folder)
	asked := f.config != "" || env(Variable("config")) != ""
	name := f.profile
	if name == "" {
		name = env(Variable("profile"))
	}
	if path == "" {
		if name != "" {
			return nil, fmt.Errorf("profile %q: there is no configuration file: give --config", name)
		}
		return nil, nil
	}
	read, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked && name == "":
		return nil, nil
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return nil, fmt.Errorf("profile %q: the configuration file %s does not exist: write it, or give --config", name, path)
	case err != nil:
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if name == "" {
		name = read.profile
	}
	if name == "" {
		return nil, nil
	}
	return read.layer(name, env)
}

// File is the configuration file that these options lead to, whether it is there or not; empty for none.
func (f *Flags) File(env func(string) string, folder string) string {
	switch {
	case f.config != "":
		return f.config
	case env(Variable("config")) != "":
		return env(Variable("config"))
	case folder != "":
		return filepath.Join(folder, DefaultFile)
	}
	return ""
}
