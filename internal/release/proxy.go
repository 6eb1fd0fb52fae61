package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy is a folder that the go command takes for a module proxy. It has our own modules only; the
// others come from where they always come from.
type proxy struct {
	dir   string
	root  string // the module path that all of ours begin with
	cache string // downloaded modules: a trial's must not stay among the user's
}

// add packs a module as a proxy does that finds the revision in git.
func (p proxy) add(of repository, m *goModule, version, revision string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	when, err := of.git("log", "-1", "--format=%cI", revision)
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct{ Version, Time string }{version, when})
	if err != nil {
		return err
	}
	gomod, err := of.git("show", revision+":"+filepath.ToSlash(filepath.Join(m.dir, "go.mod")))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"list": version, version + ".info": string(info), version + ".mod": gomod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	subfolder := m.dir
	if subfolder == "." {
		subfolder = ""
	}
	err = zip.CreateFromVCS(file, module.Version{Path: m.path, Version: version}, string(of), revision, subfolder)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// environ is the environment in which the go command finds our modules in the proxy. The checksum
// database cannot know them; it is asked about all others. What the user downloaded before is not
// downloaded again.
func (p proxy) environ() ([]string, error) {
	out, err := exec.Command("go", "env", "-json", "GOPROXY", "GONOSUMDB", "GOFLAGS", "GOMODCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var of struct{ GOPROXY, GONOSUMDB, GOFLAGS, GOMODCACHE string }
	if err := json.Unmarshal(out, &of); err != nil {
		return nil, err
	}
	return append(os.Environ(),
		"GOWORK=off",
		"GOPROXY="+fileURL(p.dir)+","+fileURL(filepath.Join(of.GOMODCACHE, "cache", "download"))+","+of.GOPROXY,
		"GONOPROXY=", "GOPRIVATE=", // if not empty, ours are looked for beside the proxies first
		"GONOSUMDB="+strings.Trim(p.root+","+of.GONOSUMDB, ","),
		"GOMODCACHE="+p.cache,
		"GOFLAGS="+strings.TrimSpace(of.GOFLAGS+" -modcacherw"),
	), nil
}

// forget removes our own modules from the downloaded ones.
func (p proxy) forget() error {
	escaped, err := module.EscapePath(p.root)
	if err != nil {
		return err
	}
	folder := filepath.Join(p.cache, filepath.FromSlash(escaped))
	versions, err := filepath.Glob(folder + "@*")
	if err != nil {
		return err
	}
	for _, dir := range append(versions, folder, filepath.Join(p.cache, "cache", "download", filepath.FromSlash(escaped))) {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// execute runs a command in a folder, with variables besides the proxy's. It prints what the
// command prints.
func (p proxy) execute(out io.Writer, dir string, variables []string, command ...string) error {
	env, err := p.environ()
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, slices.Concat(env, variables), out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }
