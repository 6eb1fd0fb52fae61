package run_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// job is the part of a Kubernetes Job by which it behaves.
type job struct {
	Kind string
	Spec struct {
		BackoffLimit *int `yaml:"backoffLimit"`
		Template     struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Grace         int    `yaml:"terminationGracePeriodSeconds"`
				Containers    []struct {
					Command, Args []string
					Env           []struct{ Name, Value string }
				}
			}
		}
	}
}

// The documentation's Job was written by hand: a flag or a variable in it that is not there would
// be found at night.
func TestRun_AsADocumentedKubernetesJob(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	text, err := os.ReadFile("../../../../../examples/kubernetes/redrive-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../../../../docs/redrive.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "    "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")+"\n") {
		t.Error("docs/redrive.md does not show the file")
	}
	var j job
	if err := yaml.Unmarshal(text, &j); err != nil {
		t.Fatal(err)
	}
	pod := j.Spec.Template.Spec
	// after a crash a second pod would be refused, and hide why the first one ended
	if j.Kind != "Job" || j.Spec.BackoffLimit == nil || *j.Spec.BackoffLimit != 0 || pod.RestartPolicy != "Never" || pod.Grace < 45 || len(pod.Containers) != 1 {
		t.Fatalf("%+v", j)
	}
	known := []string{"SIDING_SASL_PASSWORD", "SIDING_SASL_TOKEN"}
	roottest.NewCommands().PersistentFlags().VisitAll(func(f *pflag.Flag) { known = append(known, connect.Variable(f.Name)) })
	for _, v := range pod.Containers[0].Env {
		if !slices.Contains(known, v.Name) {
			t.Errorf("the variable %s means nothing", v.Name)
		}
	}

	s := roottest.IncidentOf(t, demo.Bug{Class: "tax.TableMiss", Message: "no tax rate for region", Records: 30}, demo.Bug{Class: "payment", Message: "the bank said no", Records: 10})
	s.Fix("tax.TableMiss")
	if command := pod.Containers[0].Command; !slices.Equal(command, []string{"redrive"}) {
		t.Errorf("the command is %q", command)
	}
	got := s.Redrive(t, append(pod.Containers[0].Args, roottest.Fast...)...)
	o := roottest.OutcomeOf(t, got.Stdout)
	if got.Code != cli.ExitDone || o.State != "done" || o.Succeeded != 30 || *o.Why != "OPS-4711" || o.By != "oncall" {
		t.Errorf("%+v", got)
	}
}
