package connect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Flags are the options of the command line.
type Flags struct {
	set             *pflag.FlagSet
	config, profile string
	showAll         bool
}

// AddFlags puts them into a set.
func AddFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set}
	set.StringVar(&f.config, "config", "", "configuration `file` with profiles")
	set.StringVar(&f.profile, "profile", "", "`name` of the profile to use")
	for _, s := range settings {
		// Values are checked when all are known, so that all problems are printed at once.
		switch {
		case s.truth:
			set.Bool(s.name, false, s.usage)
		case s.between == "\n":
			set.StringArray(s.name, nil, s.usage)
		default:
			set.String(s.name, "", s.usage)
		}
	}
	set.BoolVar(&f.showAll, hideNothing, false, "hide nothing, whatever the environment and the profile say")
	return f
}

// Variable is the name of the environment's variable for a flag.
func Variable(flag string) string {
	return "SIDING_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Cluster puts the options together. Its error has every problem, one a line, each with what to do.
// Problems of the configuration file come alone, since the other ones depend on it.
func (f *Flags) Cluster(env Environment) (*Cluster, error) {
	found := layers{commandLine(f.set), variables(env.Getenv)}
	c := &Cluster{Timeout: defaultTimeout}
	p, err := f.choose(env, c)
	if err != nil {
		return nil, err
	}
	if p != nil {
		found = append(found, p)
	}
	r := &resolver{layers: found, cluster: c}
	file, _ := f.File(env)
	r.address(file)
	r.naming()
	r.transport()
	r.authentication()
	r.registry()
	r.redaction(f.showAll)
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	if env.Dial != nil && !c.tls {
		c.Opts = append(c.Opts, kgo.Dialer(env.Dial))
	}
	c.Opts = slices.Clip(c.Opts)
	return c, nil
}

// choose finds the profile to use, if any: the one that is asked for, or the file's own choice.
// Without either, and without a default file, it is nil. The cluster gets the file's variables with
// secrets.
func (f *Flags) choose(env Environment, c *Cluster) (layer, error) {
	path, asked := f.File(env)
	name := cmp.Or(f.profile, env.Getenv(Variable("profile")))
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
	if name = cmp.Or(name, read.profile); name == "" {
		return nil, nil
	}
	return read.layer(name, env.Getenv)
}

// File is the configuration file that these options lead to, whether it is there or not, and
// whether the user named it; empty for none.
func (f *Flags) File(env Environment) (path string, asked bool) {
	if path = cmp.Or(f.config, env.Getenv(Variable("config"))); path != "" {
		return path, true
	}
	if env.Folder == "" {
		return "", false
	}
	return filepath.Join(env.Folder, DefaultFile), false
}
