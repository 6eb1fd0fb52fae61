package main

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// goModule is one of the repository's modules.
type goModule struct {
	dir  string // within the repository, with slashes; "." is the root
	path string
	text []byte // go.mod
	sum  []byte // go.sum, nil if there is none
	file *modfile.File
}

// readModules reads the modules that git tracks, the root first.
func readModules(r repository) (modules []*goModule, err error) {
	files, err := r.lines("ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		m := &goModule{dir: path.Dir(file)}
		if m.text, err = os.ReadFile(filepath.Join(string(r), file)); err != nil {
			return nil, err
		}
		if m.sum, err = os.ReadFile(filepath.Join(string(r), m.dir, "go.sum")); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if m.file, err = modfile.Parse(file, m.text, nil); err != nil {
			return nil, err
		}
		m.path = m.file.Module.Mod.Path
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *goModule) int { return cmp.Compare(a.dir, b.dir) })
	return modules, nil
}

// published returns the modules that users can require, each after those that it requires itself.
func published(modules []*goModule) (ordered []*goModule) {
	var add func(m *goModule)
	add = func(m *goModule) {
		if !m.isPublished() || slices.Contains(ordered, m) {
			return
		}
		for _, other := range m.requires(modules) {
			add(other)
		}
		ordered = append(ordered, m)
	}
	for _, m := range modules {
		add(m)
	}
	return ordered
}

// isPublished reports whether the module is for users. Examples are to be copied, deploy has what
// operators load, and nobody else can import what is internal.
func (m *goModule) isPublished() bool {
	parts := strings.Split(m.dir, "/")
	return parts[0] != "examples" && parts[0] != "deploy" && !slices.Contains(parts, "internal")
}

// tag returns the tag of the module's version; the go command finds a nested module by its folder.
func (m *goModule) tag(version string) string { return path.Join(m.dir, version) }

// requires returns which of the modules this one requires.
func (m *goModule) requires(modules []*goModule) (required []*goModule) {
	for _, other := range modules {
		if slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return r.Mod.Path == other.path }) {
			required = append(required, other)
		}
	}
	return required
}

// at returns a go.mod that requires the other modules at a version. Without replace directives it
// is what users get: they would ignore those of a library, and `go install` refuses a program that
// has some.
func (m *goModule) at(version string, modules []*goModule, replaced bool) ([]byte, error) {
	file, err := modfile.Parse(path.Join(m.dir, "go.mod"), m.text, nil)
	if err != nil {
		return nil, err
	}
	for _, other := range m.requires(modules) {
		if err := file.AddRequire(other.path, version); err != nil {
			return nil, err
		}
		if !replaced {
			if err := file.DropReplace(other.path, ""); err != nil {
				return nil, err
			}
		}
	}
	file.Cleanup()
	return file.Format()
}
