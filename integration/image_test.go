package integration_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

const image = "siding/redrive:test"

// The image runs as Kubernetes runs it by the chart: as nobody, on a root that is read-only,
// without capabilities. It has no shell, and ends in order at SIGTERM.
func TestImageServesAsNobodyOnAReadOnlyRoot(t *testing.T) {
	t.Parallel()
	kafka := shared.Kafka(t)
	// Of what is compiled for the tests.
	build := exec.Command("make", "-C", "..", "image", "IMAGE="+image, "GOWORK="+os.Getenv("GOWORK"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make image: %v\n%s", err, out)
	}
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	free.Close()
	// The zone is one that only the program itself can know: the image has no files of zones. The
	// hash is that of the token a.
	for name, text := range map[string]string{
		"serve.yaml": "listen: " + address + "\nrules-file: rules.yaml\naccess: {tokens-file: tokens.yaml}\n",
		"rules.yaml": "rules: [{name: none, topics: none, classes: [none], zone: Europe/Berlin}]\n",
		"tokens.yaml": "tokens: [{name: prometheus, sha256: ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb," +
			" grants: [{role: viewer}]}]\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	c, err := testcontainers.Run(t.Context(), image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.WithEnv(map[string]string{"SIDING_BROKERS": strings.Join(kafka.Brokers(), ",")}),
		testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
			hc.NetworkMode, hc.ReadonlyRootfs, hc.CapDrop = "host", true, []string{"ALL"}
			hc.SecurityOpt = []string{"no-new-privileges"}
			hc.Binds = []string{dir + ":/etc/siding/config:ro"}
		}),
		testcontainers.WithWaitStrategy(wait.ForLog("http://"+address)),
	)
	testcontainers.CleanupContainer(t, c)
	must(t, err)
	is, err := c.Inspect(t.Context())
	must(t, err)
	if is.Config.User != "65532:65532" || is.Config.Labels["org.opencontainers.image.source"] == "" {
		t.Errorf("the image's user is %q, its labels are %q", is.Config.User, is.Config.Labels)
	}
	if code, _, err := c.Exec(t.Context(), []string{"/bin/sh", "-c", "true"}); err == nil && code == 0 {
		t.Error("the image has a shell")
	}
	answer := func(path, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		must(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer got.Body.Close()
		text, _ := io.ReadAll(got.Body)
		return got.StatusCode, string(text)
	}
	eventually(t, time.Minute, func() error {
		if code, text := answer("/readyz", ""); code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, text)
		}
		return nil
	})
	if code, _ := answer("/metrics", ""); code != http.StatusUnauthorized {
		t.Errorf("/metrics without a token: %d", code)
	}
	if code, text := answer("/metrics", "a"); code != http.StatusOK {
		t.Errorf("/metrics: %d %s", code, text)
	}
	grace := 20 * time.Second
	must(t, c.Stop(t.Context(), &grace))
	ended, err := c.State(t.Context())
	must(t, err)
	if want := 0; ended.ExitCode != want {
		t.Errorf("the exit code is %d, want %d", ended.ExitCode, want)
	}
}
