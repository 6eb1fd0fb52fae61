package monitoring_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/sidingkafka/siding/deploy/monitoring"
)

const (
	root       = "../.."
	alertsFile = root + "/deploy/prometheus/alerts.yaml"
	alertsTest = root + "/deploy/prometheus/alerts_test.yaml"
	boards     = root + "/deploy/grafana/"
)

func golden(t *testing.T) monitoring.Series {
	t.Helper()
	s, err := monitoring.Golden(root)
	if err != nil || len(s) < 30 {
		t.Fatalf("the golden files have %d series, %v", len(s), err)
	}
	return s
}

func alerts(t *testing.T) monitoring.Alerts {
	t.Helper()
	a, err := monitoring.ReadAlerts(alertsFile)
	if err != nil || len(a.All()) == 0 {
		t.Fatal(len(a.All()), err)
	}
	return a
}

// tool returns the path of a program of Debian's package prometheus. Without it the test is
// skipped; in CI it fails, since .ci/install.sh installs it.
func tool(t *testing.T, name string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%v: .ci/install.sh installs it", err)
	default:
		t.Skipf("%v: apt-get install --no-install-recommends prometheus", err)
	}
	return file
}
