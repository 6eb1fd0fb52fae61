package connect

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// DefaultFile is the configuration file below the user's configuration folder.
var DefaultFile = filepath.Join("siding", "config.yaml")

// A file of profiles:
//
//	profile: staging        # the one to use where none is asked for
//	profiles:
//	  staging:
//	    brokers: [kafka-1:9093, kafka-2:9093]
//	    tls-ca: ca.pem      # relative to this file
//	    sasl: SCRAM-SHA-512
//	    sasl-user: oncall
//	    sasl-password-env: STAGING_PASSWORD
//
// Keys are the flags' names. Values stay nodes of the YAML library, which have a line and are never
// part of an error: they may be secrets.
type file struct {
	path     string
	profile  string
	profiles map[string]map[string]ast.Node
}

// Profiles names the profiles of a configuration file, for completion.
func Profiles(path string) []string {
	f, err := readFile(path)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.profiles))
}

// readFile reads a configuration file; its error has every problem, one a line.
func readFile(path string) (*file, error) {
	f := &file{path: path, profiles: map[string]map[string]ast.Node{}}
	y, root, err := parseYAML(path)
	if err != nil {
		return nil, err
	}
	for key, n := range y.mapping(root) {
		switch key {
		case "profile":
			if text, ok := scalar(n); ok {
				f.profile = text
			} else {
				y.unexpected(n)
			}
		case "profiles":
			for name, settings := range y.mapping(n) {
				f.profiles[name] = y.mapping(settings)
			}
		default:
			y.problem(n, "field %s not found", withoutQuotes(key))
		}
	}
	return f, y.problems()
}

// layer reads a profile; every problem is in the error.
func (f *file) layer(name string, getenv func(string) string) (layer, error) {
	settings, ok := f.profiles[name]
	if !ok {
		there := "it has none"
		if len(f.profiles) > 0 {
			there = "there are " + strings.Join(slices.Sorted(maps.Keys(f.profiles)), ", ")
		}
		return nil, fmt.Errorf("%s: there is no profile %q: %s", f.path, name, there)
	}
	values := map[string]string{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		n := settings[key]
		text, err := f.setting(key, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: profile %s: %w", f.path, lineOf(n), name, err))
		} else if text != "" {
			values[key] = text
		}
	}
	return profile(name, values, getenv), errors.Join(errs...)
}

// setting reads one line of a profile. No error may quote a value, which can be a secret in the
// wrong place.
func (f *file) setting(key string, n ast.Node) (text string, err error) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == key })
	switch {
	case slices.ContainsFunc(secrets, func(name string) bool { return key == name+envSuffix }):
	case secretive.MatchString(key) && i < 0:
		instead := password
		if strings.Contains(strings.ToLower(key), "token") {
			instead = token
		}
		if strings.HasPrefix(strings.ToLower(key), registryURL) {
			instead = registryURL + strings.TrimPrefix(instead, "sasl")
		}
		return "", fmt.Errorf("%s: a secret has no place in this file; name a file by %s, or a variable by %s", key, instead+fileSuffix, instead+envSuffix)
	case i < 0:
		return "", fmt.Errorf("%s is not known: keys are the flags' names, as brokers or tls-ca", key)
	}
	text, ok := scalar(n)
	if !ok && i >= 0 && settings[i].between != "" {
		text, ok = joined(n, settings[i].between)
	}
	if !ok {
		return "", fmt.Errorf("%s has one value", key)
	}
	if strings.Contains(text, "-----BEGIN") {
		return "", fmt.Errorf("%s names a file; its content has no place here", key)
	}
	if i >= 0 && settings[i].file && text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(f.path), text)
	}
	return text, nil
}

// secretive is a key that looks as if its value were a secret.
var secretive = regexp.MustCompile(`(?i)passw|token|secret|credential|key-pem`)
