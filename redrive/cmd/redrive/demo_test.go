package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The demo is often the first use of the program, and the runbook quotes it. So its comments must
// agree with the output of the commands.
func TestPlayDemo_IsTrueAndTakesLessThanAMinute(t *testing.T) {
	if testing.Short() {
		t.Skip("takes thirteen seconds of real time")
	}
	t.Parallel()
	var all strings.Builder
	began := time.Now()
	i := invocation{now: time.Now, heard: func(words string) { all.WriteString(words) }, env: map[string]string{
		// the user's own settings, which the demo must ignore
		"SIDING_BROKERS": "127.0.0.1:1", "SIDING_SASL": "PLAIN", "SIDING_DLQ_NAME": "{topic}.dead",
	}}
	got := i.run(t, "demo")
	if took := time.Since(began); got.code != exitDone || took > demoTime {
		t.Fatalf("exit code %d after %s: %s", got.code, took, got.stderr)
	}
	inOrder(t, got.stderr,
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
	inOrder(t, got.stdout,
		"OPEN         2000\n", " 1200  tax.TableMiss", "  500  payment.Declined", "  300  decode",
		"LETTERS        1200\n", "SEEN BY        billing\n",
		"STATE         done\n", "SENT          1200\n", "SUCCEEDED     1200\n", "FAILED AGAIN  0\n",
		"STATE         aborted\n", "CAUSE         letter orders.dlq/", "SENT          1\n", "FAILED AGAIN  1\n",
		"OPEN         800\n", "  500  payment.Declined", "  300  decode",
	)
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "    go run ./redrive/cmd/redrive demo\n")
	shown, _, _ = strings.Cut(shown, "\n## ")
	lines := regexp.MustCompile(`(?m)^ {4}(.*)$`).FindAllStringSubmatch(shown, -1)
	if len(lines) == 0 {
		t.Error("the README shows nothing of the demo")
	}
	_, aborted, _ := strings.Cut(got.stdout, "STATE         aborted\n")
	for _, line := range lines {
		if printed := got.stderr + "STATE         aborted\n" + aborted; !strings.Contains(printed, line[1]+"\n") {
			t.Errorf("the README shows %q, which the demo does not print", line[1])
		}
	}
}
