package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// check makes the next release in a copy of the last commit, and uses it as a stranger would: from
// a module outside of this tree, by a module proxy, with what README.md says.
func check(of repository, cache string, out io.Writer) error {
	work, err := os.MkdirTemp("", "siding-release-check-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if cache == "" {
		cache = filepath.Join(work, "cache")
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return err
	}
	copied, err := of.clone(filepath.Join(work, "copy"))
	if err != nil {
		return err
	}
	now := time.Now()
	version, err := trial(copied, now)
	if err != nil {
		return err
	}
	changed, err := of.lines("status", "--porcelain")
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		fmt.Fprintln(out, "release-check: of the last commit; the checkout has changes besides")
	}
	fmt.Fprintf(out, "release-check: preparing %s in a copy\n", version)
	if err := prepare(copied, version, now, io.Discard); err != nil {
		return err
	}
	modules, err := readModules(copied)
	if err != nil {
		return err
	}
	p := proxy{dir: filepath.Join(work, "proxy"), root: modules[0].path, cache: cache}
	if err := p.forget(); err != nil {
		return err
	}
	for _, m := range published(modules) {
		if err := p.add(copied, m, version, m.tag(version)); err != nil {
			return err
		}
	}
	u := user{proxy: p, home: filepath.Join(work, "user"), tree: string(copied), out: out}
	for _, step := range []func() error{
		func() error { return u.getEach(published(modules), version) },
		func() error { return u.followReadme(version) },
		u.buildService,
		u.testUnit,
		u.testKafka,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "release-check: %s works outside of this tree\n", version)
	return nil
}

// trial chooses the version of a trial. No two trials have the same, since the go command remembers
// for ever which files a version has. Just after a release nothing is unreleased; then the trial
// has an entry of its own.
func trial(of repository, now time.Time) (version string, err error) {
	file := filepath.Join(string(of), "CHANGELOG.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	tags, err := of.lines("tag", "--list")
	if err != nil {
		return "", err
	}
	identity := [][]string{
		{"config", "user.name", "release-check"},
		{"config", "user.email", "release-check@localhost"},
		{"config", "commit.gpgSign", "false"},
		{"config", "tag.gpgSign", "false"},
	}
	if changelog(text).empty() {
		text = bytes.Replace(text, []byte(unreleased), []byte(unreleased+"\n- A trial.\n"), 1)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return "", err
		}
		identity = append(identity, []string{"commit", "-qam", "a trial"})
	}
	// A shallow clone has no tags; the changelog knows its versions too.
	next := nextVersion(slices.Concat(tags, changelog(text).released()))
	return fmt.Sprintf("%s-trial.%d", next, now.Unix()), of.all(identity...)
}

// user is somebody who has the README and the go command.
type user struct {
	proxy proxy
	home  string
	tree  string // where the README is
	out   io.Writer
}

func (u user) folder() string { return filepath.Join(u.home, "service") }

// getEach requires each module from a new one.
func (u user) getEach(modules []*goModule, version string) error {
	for _, m := range modules {
		dir := filepath.Join(u.home, path.Base(m.path))
		if err := u.begin(dir); err != nil {
			return err
		}
		if err := u.run(dir, "go", "get", m.path+"@"+version); err != nil {
			return err
		}
	}
	return nil
}

// followReadme runs the commands by which the README gets the modules, and asks the installed
// program for its version.
func (u user) followReadme(version string) error {
	text, err := u.read("README.md")
	if err != nil {
		return err
	}
	commands, err := readme(text).commands(u.proxy.root)
	if err != nil {
		return err
	}
	if err := u.begin(u.folder()); err != nil {
		return err
	}
	for _, c := range commands {
		if err := u.run(u.folder(), c...); err != nil {
			return err
		}
	}
	program := filepath.Join(u.home, "bin", "redrive")
	var printed bytes.Buffer
	if err := u.proxy.execute(&printed, u.home, nil, program, "version", "-o", "json"); err != nil {
		return fmt.Errorf("%w\n%s", err, printed.Bytes())
	}
	var got struct{ Version string }
	if err := json.Unmarshal(printed.Bytes(), &got); err != nil {
		return fmt.Errorf("redrive version: %w in %s", err, printed.Bytes())
	}
	if got.Version != version {
		return fmt.Errorf("`redrive version` prints %q, want %s", got.Version, version)
	}
	fmt.Fprintf(u.out, "      redrive version: %s\n", got.Version)
	return nil
}

// readmeFile is a file that a user makes of a block of the README.
type readmeFile struct {
	name    string
	around  string
	has     string // by which the block is recognized
	example string // the file that has the same block
}

var (
	service  = readmeFile{"main.go", serviceAround, "consumer.New(", "consumer/example_readme_test.go"}
	unitTest = readmeFile{"unit/readme_test.go", testAround, "consumertest.", "consumer/consumertest/example_test.go"}
)

// buildService builds the service that the README shows.
func (u user) buildService() error {
	return u.compile(service, "go", "build", "-o", os.DevNull, ".")
}

// testUnit runs the test that the README shows.
func (u user) testUnit() error {
	return u.compile(unitTest, "go", "test", "-count=1", "./unit")
}

// testKafka runs the suite on real Kafka that the README leads to, as the team that copies it.
func (u user) testKafka() error {
	files, err := filepath.Glob(filepath.Join(u.tree, "examples/realkafka/*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := u.write("realkafka/"+filepath.Base(file), text); err != nil {
			return err
		}
	}
	if err := u.run(u.folder(), "go", "mod", "tidy"); err != nil {
		return err
	}
	return u.run(u.folder(), "go", "test", "-count=1", "-v", "./realkafka")
}

// compile makes a file of one of the README's blocks, and runs a command on it.
func (u user) compile(f readmeFile, command ...string) error {
	source, err := u.complete(f)
	if err != nil {
		return err
	}
	if err := u.write(f.name, source); err != nil {
		return err
	}
	if err := u.run(u.folder(), "go", "mod", "tidy"); err != nil {
		return err
	}
	return u.run(u.folder(), command...)
}

func (u user) complete(f readmeFile) ([]byte, error) {
	text, err := u.read("README.md")
	if err != nil {
		return nil, err
	}
	block, err := readme(text).block(f.has)
	if err != nil {
		return nil, err
	}
	given, err := u.read(f.example)
	if err != nil {
		return nil, err
	}
	return complete(f.around, block, given)
}

// begin makes a folder with a module of its own.
func (u user) begin(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return u.run(dir, "go", "mod", "init", "example.com/"+filepath.Base(dir))
}

func (u user) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(u.tree, name))
	return string(text), err
}

func (u user) write(name string, text []byte) error {
	file := filepath.Join(u.folder(), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// run runs one of the user's commands, and prints what it printed if it failed or is a test.
func (u user) run(dir string, command ...string) error {
	fmt.Fprintf(u.out, "%s $ %s\n", time.Now().Format(time.TimeOnly), strings.Join(command, " "))
	var printed bytes.Buffer
	err := u.proxy.execute(&printed, dir, []string{"GOBIN=" + filepath.Join(u.home, "bin")}, command...)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, printed.Bytes())
	}
	if slices.Contains(command, "test") {
		_, _ = printed.WriteTo(u.out)
	}
	return nil
}
