package demo_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The demo is often the first use of the program, and the runbook quotes it. So its comments must
// agree with the output of the commands.
func TestPlayDemo_IsTrueAndTakesLessThanAMinute(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		var all strings.Builder
		began := time.Now()
		var network kfake.VirtualNetwork
		i := roottest.Invocation{Listen: network.Listen, Dial: network.DialContext, Now: time.Now, Watch: func(words string) { all.WriteString(words) }, Env: map[string]string{
			// the user's own settings, which the demo must ignore
			"SIDING_BROKERS": "127.0.0.1:1", "SIDING_SASL": "PLAIN", "SIDING_DLQ_NAME": "{topic}.dead",
		}}
		got := i.Run(t, "demo")
		if took := time.Since(began); got.Code != cli.ExitDone || took > time.Minute {
			t.Fatalf("exit code %d after %s: %s", got.Code, took, got.Stderr)
		}
		roottest.InOrder(t, got.Stderr,
			"has put 2000 records into orders.dlq",
			"$ redrive summary orders.dlq\n",
			"$ redrive plan orders.dlq --class tax.TableMiss --rate 150 --ramp 2s --window 3s\n",
			"$ redrive run orders.dlq --class tax.TableMiss --rate 150 --ramp 2s --window 3s --why OPS-4711\n",
			": 1200 letters to orders.retry.1s",
			"the canary succeeded; sending\n",
			"$ redrive run orders.dlq --class payment.Declined --rate 150 --ramp 2s --window 3s --why OPS-4712\n",
			"not sent, still open: 499 letters\nfailures:\n",
			" aborted: letter orders.dlq/",
			"exit code 3",
			"$ redrive runs orders.dlq\n",
			"$ redrive summary orders.dlq\n",
			"The service has processed 1200 records, each once.",
		)
		roottest.InOrder(t, got.Stdout,
			"OPEN         2000\n", " 1200  tax.TableMiss", "  500  payment.Declined", "  300  decode",
			"LETTERS        1200\n", "SEEN BY        billing\n",
			"STATE         done\n", "SENT          1200\n", "SUCCEEDED     1200\n", "FAILED AGAIN  0\n",
			"STATE         aborted\n", "CAUSE         letter orders.dlq/", "SENT          1\n", "FAILED AGAIN  1\n",
			"OPEN         800\n", "  500  payment.Declined", "  300  decode",
		)
		readme, err := os.ReadFile("../../../../../README.md")
		if err != nil {
			t.Fatal(err)
		}
		_, shown, _ := strings.Cut(string(readme), "    go run ./redrive/cmd/redrive demo\n")
		shown, _, _ = strings.Cut(shown, "\n## ")
		lines := regexp.MustCompile(`(?m)^ {4}(.*)$`).FindAllStringSubmatch(shown, -1)
		if len(lines) == 0 {
			t.Error("the README shows nothing of the demo")
		}
		_, aborted, _ := strings.Cut(got.Stdout, "STATE         aborted\n")
		for _, line := range lines {
			if printed := got.Stderr + "STATE         aborted\n" + aborted; !strings.Contains(printed, line[1]+"\n") {
				t.Errorf("the README shows %q, which the demo does not print", line[1])
			}
		}
	})
}

// A newcomer opens the address that the demo prints. The console there has the incident, which goes
// on: some records fail each second. Ctrl-C ends broker, service and server in order.
func TestServeDemo_ShowsTheIncidentUntilItIsInterrupted(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the demo takes more than a minute"))
	defer cancel()
	cmd := roottest.Command(ctx, "demo", "--serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "SIDING_BROKERS=127.0.0.1:1", "SIDING_DLQ_NAME={topic}.dead")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	words := bufio.NewReader(pipe)
	printed, address := "", ""
	for address == "" {
		line, err := words.ReadString('\n')
		if printed += line; err != nil {
			t.Fatalf("it ended before it printed an address: %s", printed)
		}
		if strings.HasPrefix(line, "http://127.0.0.1:") {
			address = strings.TrimSpace(line)
		}
	}
	if strings.HasSuffix(address, ":8642") {
		t.Errorf("it listens at %s, not where --listen says", address)
	}
	roottest.Page(ctx, t, address+"/", regexp.MustCompile(`href="/topics/orders\.dlq"`), regexp.MustCompile(`2,0(0[1-9]|[1-9]\d) open`))
	roottest.Page(ctx, t, address+"/topics/orders.dlq", regexp.MustCompile(`tax\.TableMiss`), regexp.MustCompile(`payment\.Declined`), regexp.MustCompile(`decode`))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(words)
	if err := cmd.Wait(); err != nil || !strings.HasSuffix(string(rest), "stopping; once more ends at once\n") {
		t.Errorf("it ended by %v, and printed %s", err, rest)
	}
}

func TestMain(m *testing.M) { roottest.RunTests(m) }

// The demo hides what flags and variables name, so that redaction can be tried on it.
func TestServeDemo_TakesRedaction(t *testing.T) {
	t.Parallel()
	got := roottest.Invocation{Env: map[string]string{"SIDING_REDACT": "a["}}.Run(t, "demo", "--serve", "--redact-pattern", "(")
	roottest.Prints(t, got, cli.ExitUsage, "", "redrive: SIDING_REDACT: \"a[\" at column 3: the bracket does not end\n  --redact-pattern: error parsing regexp")
}
