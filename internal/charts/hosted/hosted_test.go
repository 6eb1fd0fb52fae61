package hosted

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../../.."

type workflow struct {
	Permissions map[string]string
	Concurrency map[string]string
	Jobs        map[string]struct {
		Permissions any
		Timeout     int `yaml:"timeout-minutes"`
		Strategy    struct {
			Matrix struct{ Go []string }
		}
		Steps []struct {
			Run  string
			Uses yaml.Node
			With map[string]string
		}
	}
}

// What the hosted workflow runs is what .ci/run runs, each a step that anybody can repeat. Besides,
// it searches for vulnerabilities, which needs the network, and runs what takes hours.
// .ci/install.sh installs Debian's packages there.
func TestWorkflow_RunsWhatCIRuns(t *testing.T) {
	t.Parallel()
	var hosted []string
	for _, job := range readWorkflow(t).Jobs {
		for _, s := range job.Steps {
			if s.Run != "" && !strings.HasPrefix(s.Run, "sudo apt-get ") {
				hosted = append(hosted, strings.TrimSpace(s.Run))
			}
		}
	}
	want := []string{"make full", "make vulnerabilities"}
	for _, m := range regexp.MustCompile(`(?m)^\s*step \S+ ((?:make|go) [^#\n]*[^#\s])`).FindAllStringSubmatch(read(t, ".ci/run"), -1) {
		want = append(want, m[1])
	}
	slices.Sort(hosted)
	slices.Sort(want)
	if !slices.Equal(hosted, want) {
		t.Errorf("ci.yml runs\n%s\n.ci/run and the search for vulnerabilities are\n%s", strings.Join(hosted, "\n"), strings.Join(want, "\n"))
	}
}

// The commands that README gives a newcomer work on a machine that has nothing but Go.
func TestCI_RunsWhatREADMESays(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(read(t, "README.md"), "\n## Try it\n")
	text, _, _ = strings.Cut(text, "\n## ")
	commands := regexp.MustCompile(`(?m)^    (go run .*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) < 2 {
		t.Fatalf("README's \"Try it\" has %d commands", len(commands))
	}
	ci := read(t, ".ci/run")
	for _, c := range commands {
		if !regexp.MustCompile(`(?m)^\s*step \S+ ` + regexp.QuoteMeta(c[1]) + `$`).MatchString(ci) {
			t.Errorf(".ci/run has no step %q", c[1])
		}
	}
}

// A service's users may have the Go version of go.mod or the newest.
func TestWorkflow_TestsTwoVersionsOfGo(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "go.mod"))[1]
	jobs := readWorkflow(t).Jobs
	for _, name := range []string{"test", "integration"} {
		if got, want := jobs[name].Strategy.Matrix.Go, []string{version, "stable"}; !slices.Equal(got, want) {
			t.Errorf("ci.yml, job %s: Go %v, want %v", name, got, want)
		}
	}
}

// The workflow runs code of pull requests: it may read the repository, and nothing else. An action
// is a commit, since a tag can be moved.
func TestWorkflow_MayDoLittle(t *testing.T) {
	t.Parallel()
	w := readWorkflow(t)
	if want := map[string]string{"contents": "read"}; !maps.Equal(w.Permissions, want) {
		t.Errorf("ci.yml has the permissions %v, want %v", w.Permissions, want)
	}
	if w.Concurrency["group"] == "" {
		t.Error("ci.yml: runs of one pull request do not replace each other")
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	for name, job := range w.Jobs {
		if job.Permissions != nil {
			t.Errorf("ci.yml, job %s: permissions of its own: %v", name, job.Permissions)
		}
		if job.Timeout == 0 {
			t.Errorf("ci.yml, job %s: no timeout", name)
		}
		for _, s := range job.Steps {
			if s.Uses.Value == "" {
				continue
			}
			if !pinned.MatchString(s.Uses.Value) || !strings.HasPrefix(s.Uses.LineComment, "# v") {
				t.Errorf("ci.yml, job %s: %s %s: want a commit, and its version as a comment", name, s.Uses.Value, s.Uses.LineComment)
			}
			if strings.HasPrefix(s.Uses.Value, "actions/checkout@") && s.With["persist-credentials"] != "false" {
				t.Errorf("ci.yml, job %s: the token stays in the checkout", name)
			}
		}
	}
}

// A module that the bot does not know keeps its dependencies for ever.
func TestDependabot_KnowsEachModule(t *testing.T) {
	t.Parallel()
	var file struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	parse(t, ".github/dependabot.yml", &file)
	got := map[string][]string{}
	for _, u := range file.Updates {
		got[u.Ecosystem] = u.Directories
	}
	if _, ok := got["github-actions"]; !ok {
		t.Error("dependabot.yml: nothing about the workflow's actions")
	}
	cmd := exec.Command("git", "ls-files", "go.mod", "*/go.mod")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for file := range strings.FieldsSeq(string(out)) {
		want = append(want, path.Join("/", path.Dir(file)))
	}
	slices.Sort(want)
	if !slices.Equal(got["gomod"], want) {
		t.Errorf("dependabot.yml has the modules\n%v\nwant\n%v", got["gomod"], want)
	}
}

// A form with a mistake is not shown, and its author sees no error.
func TestForms_AreComplete(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/ISSUE_TEMPLATE/*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("forms %v, %v", files, err)
	}
	for _, file := range files {
		name := filepath.ToSlash(strings.TrimPrefix(file, root+"/"))
		if path.Base(name) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Labels            []string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label, Description, Value, Render string
				}
				Validations struct{ Required bool }
			}
		}
		parse(t, name, &form)
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: want a name, a description and a body", name)
		}
		ids := map[string]bool{}
		for i, field := range form.Body {
			switch field.Type {
			case "markdown":
				if field.Attributes.Value == "" {
					t.Errorf("%s: text %d is empty", name, i)
				}
			case "input", "textarea":
				if field.ID == "" || ids[field.ID] || field.Attributes.Label == "" {
					t.Errorf("%s: field %d: want an id of its own and a label", name, i)
				}
				ids[field.ID] = true
			default:
				t.Errorf("%s: field %d has the type %q", name, i, field.Type)
			}
		}
	}
}

func readWorkflow(t *testing.T) (w workflow) {
	t.Helper()
	text := read(t, ".github/workflows/ci.yml")
	// Here other keys are legal: actionlint knows them all, in `make lint`.
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// parse fails on a key that it does not know, if the file is a form: a key that is misspelt does
// nothing.
func parse(t *testing.T, name string, into any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, name)))
	d.KnownFields(strings.Contains(name, "ISSUE_TEMPLATE"))
	if err := d.Decode(into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
