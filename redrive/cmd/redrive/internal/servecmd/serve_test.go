package servecmd_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A broken configuration is printed with files and lines before a broker is asked, and ends with
// the exit code of errors of usage.
func TestServe_ABrokenConfigurationAsksNoBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if c, err := l.Accept(); err == nil {
			c.Close()
			t.Error("a broker was asked")
		}
	}()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("rules.yaml", "rules:\n  - {name: a, topics: '*', classes: [b], zone: Mars/Base}\n")
	right := write("right.yaml", "refresh: 5s\n")
	wrong := write("wrong.yaml", "listn: x\nrefresh: soon\n")
	rules := write("serve.yaml", "rules-file: rules.yaml\n")
	open := write("open.yaml", "listen: 0.0.0.0:8642\naccess: {tokens-file: tokens.yaml}\n")
	if err := os.Chmod(write("tokens.yaml", "tokens: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const help = "see redrive serve --help\n"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--config", wrong}, cli.ExitUsage, "redrive: DIR/wrong.yaml:1: listn: there is no such key; did you mean listen?\n" +
			"  DIR/wrong.yaml:2: refresh: \"soon\" is not a duration: as in 90s, 5m, 4h, 180d\n" + help},
		{[]string{"--config", rules}, cli.ExitUsage, "redrive: DIR/rules.yaml:2: rules[0].zone: \"Mars/Base\" is no time zone: as in Europe/Berlin\n" + help},
		{[]string{"--config", rules, "--check"}, cli.ExitUsage, "redrive: DIR/rules.yaml:2: rules[0].zone: \"Mars/Base\" is no time zone: as in Europe/Berlin\n" + help},
		{[]string{"--config", filepath.Join(dir, "none.yaml")}, cli.ExitUsage, "redrive: the configuration cannot be read: open DIR/none.yaml: no such file or directory\n" + help},
		{
			[]string{"--config", right, "--listen", "0.0.0.0:80"},
			cli.ExitUsage,
			"redrive: --listen: \"0.0.0.0:80\" is not a loopback address: without access control the server listens on 127.0.0.1 or [::1] only\n" + help,
		},
		{[]string{"--config", right, "--tls-cert", "x"}, cli.ExitUsage, "redrive: --tls-cert is given without its key: give --tls-key too\n" + help},
		{[]string{"--check"}, cli.ExitUsage, "redrive: --check has nothing to check: give --config\n" + help},
		{[]string{"--config", right, "--check"}, cli.ExitDone, "DIR/right.yaml and the files that it names are right\n"},
		{
			[]string{"--config", open, "--check"},
			cli.ExitDone,
			"warning: access.tokens-file: other users of this machine can read or change DIR/tokens.yaml (mode 0644): chmod 600 DIR/tokens.yaml\n" +
				"warning: tls: not set, so tokens and sessions go over the network as they are: set cert-file and key-file, or, if a proxy before the server speaks HTTPS, " +
				"set url to its https:// address\nDIR/open.yaml and the files that it names are right\n",
		},
	} {
		got := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": l.Addr().String()}}.Run(t, append([]string{"serve"}, c.args...)...)
		got.Stderr = strings.ReplaceAll(got.Stderr, dir, "DIR")
		roottest.Exactly(t, got, c.code, "", c.want, c.args)
	}
	l.Close()
	<-asked
}
