package charts

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Chart is a Helm chart.
type Chart struct{ is *chart.Chart }

// Load reads the chart in a folder.
func Load(dir string) (*Chart, error) {
	is, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	return &Chart{is}, nil
}

// Render returns what the chart installs with some values, by the name of the template, as in
// service.yaml. Templates that make nothing are left out.
func (c *Chart) Render(values map[string]any) (map[string]string, error) {
	release := common.ReleaseOptions{Name: "siding-serve", Namespace: "kafka", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c.is, values, release, nil)
	if err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	texts, err := engine.Render(c.is, all)
	if err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	made := map[string]string{}
	for name, text := range texts {
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(path.Base(name), "_") {
			made[path.Base(name)] = text + "\n"
		}
	}
	return made, nil
}

// order is that in which manifests stand in one file: what others need comes first.
var order = []string{"serviceaccount.yaml", "configmap.yaml", "service.yaml", "deployment.yaml", "poddisruptionbudget.yaml"}

// Manifests returns what the chart makes with its default values, for those who do not use Helm.
func (c *Chart) Manifests() (string, error) {
	made, err := c.Render(nil)
	if err != nil {
		return "", err
	}
	text := "# redrive serve, for kubectl apply. Made of the chart in deploy/helm with its default values; docs/serve.md says how to\n# set it up.\n"
	for _, name := range order {
		text += "---\n"
		for line := range strings.Lines(made[name]) {
			if !slices.Contains([]string{"app.kubernetes.io/managed-by", "helm.sh/chart"}, key(line)) {
				text += line
			}
		}
		delete(made, name)
	}
	delete(made, "NOTES.txt")
	for name := range made {
		return "", fmt.Errorf("charts: %s has no place in the manifests", name)
	}
	return text, nil
}

func key(line string) string {
	k, _, _ := strings.Cut(strings.TrimSpace(line), ":")
	return k
}
