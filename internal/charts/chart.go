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
	return c.RenderIn(nil, values)
}

// RenderIn is [Chart.Render] for a cluster, in which templates look up what is there. In none, as
// with helm template, they find nothing.
func (c *Chart) RenderIn(cluster engine.ClientProvider, values map[string]any) (map[string]string, error) {
	release := common.ReleaseOptions{Name: "siding-serve", Namespace: "kafka", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c.is, values, release, nil)
	if err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	var texts map[string]string
	if cluster == nil {
		texts, err = engine.Render(c.is, all)
	} else {
		texts, err = engine.RenderWithClientProvider(c.is, all, cluster)
	}
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
// Both Secrets are theirs to make: that of the tokens, and that of the key of sessions.
func (c *Chart) Manifests() (string, error) {
	made, err := c.Render(nil)
	if err != nil {
		return "", err
	}
	text := "# redrive serve, for kubectl apply. Made of the chart in deploy/helm with its default values, and without the Secrets of\n# its tokens and of its session key: docs/serve.md says how to make them.\n"
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
	delete(made, "session.yaml") // a key that everybody can read is none
	for name := range made {
		return "", fmt.Errorf("charts: %s has no place in the manifests", name)
	}
	return text, nil
}

func key(line string) string {
	k, _, _ := strings.Cut(strings.TrimSpace(line), ":")
	return k
}
