package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/onend"
)

// ended is what --on-end tells.
type ended struct {
	outcome
	Result   string
	ExitCode int
	Message  *string
}

// Nobody watches a run for hours: somebody is told of its end. That a call fails changes nothing
// else.
func TestEnding_TellsHowARunEnded(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	var posts []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts = append(posts, string(body))
	}))
	defer server.Close()
	told := func(text string) (e ended) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		return e
	}
	file := filepath.Join(t.TempDir(), "told")
	command := func(after string) string { return "cat > " + file + "; env | grep REDRIVE_ >> " + file + "; " + after }
	read := func() (body, env string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		body, env, _ = strings.Cut(string(text), "}REDRIVE")
		return body + "}", "REDRIVE" + env
	}

	// it aborts itself
	got := s.redrive(t, slices.Concat([]string{"run", "orders.dlq", "--class", "payment", "--on-end", server.URL}, fast)...)
	if len(posts) != 1 || got.code != exitFailedAgain || strings.Contains(got.stderr, "warning") {
		t.Fatalf("%d posts, %+v", len(posts), got)
	}
	if e := told(posts[0]); e.Result != "aborted" || e.State != "aborted" || e.ExitCode != exitFailedAgain || e.Sent != 1 || e.Cause == nil || !strings.Contains(*e.Message, "failed again with payment") {
		t.Errorf("aborted: %s", posts[0])
	}

	// it is stopped, and the command fails
	s.fix("tax")
	ctx, stop := context.WithCancelCause(t.Context())
	i := s.as()
	i.heard = func(words string) {
		if strings.HasPrefix(words, "the canary succeeded") {
			stop(errInterrupted)
		}
	}
	got = i.in(ctx, t, "run", "orders.dlq", "--class", "tax", "--rate", "20", "--ramp", "0", "--window", "2s", "--on-end", command("exit 7"))
	body, env := read()
	e := told(body)
	if got.code != exitError || e.Result != "stopped" || e.ExitCode != exitError || !strings.HasSuffix(got.stderr, "redrive: interrupted\nwarning: --on-end: the command was not told of the run's end: exit status 7\n") {
		t.Errorf("stopped: %s, %+v", body, got)
	}
	for _, want := range []string{"REDRIVE_RUN=" + e.Run + "\n", "REDRIVE_TOPIC=orders.dlq\n", "REDRIVE_RESULT=stopped\n", "REDRIVE_EXIT_CODE=1\n", "REDRIVE_SELECTED=60\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the variables lack %q: %s", want, env)
		}
	}

	// it is resumed, and done; what the command prints is no data
	got = s.redrive(t, "resume", e.Run, "-o", "json", "--on-end", command("echo told"))
	body, _ = read()
	if end := told(body); got.code != exitDone || end.Result != "done" || end.ExitCode != 0 || end.Succeeded != 60 || end.Message != nil || end.Run != e.Run {
		t.Errorf("done: %s, %+v", body, got)
	}
	if o := outcomeOf(t, got.stdout); o.State != "done" || !strings.HasSuffix(got.stderr, "told\n") {
		t.Errorf("done: %+v", got)
	}

	// it does not begin
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	prints(t, s.redrive(t, "run", "orders.dlq", "--class", "tax", "--on-end", command("true")), exitRefused, "", "nothing selected")
	if _, err := os.Stat(file); err == nil {
		t.Error("a run that did not begin has an end")
	}
	for _, verb := range [][]string{{"run", "orders.dlq"}, {"resume", "orders.dlq/r-1"}} {
		prints(t, s.redrive(t, append(verb, "--on-end", "ftp://example.com")...), exitUsage, "", "--on-end: a URL begins with http:// or https://", verb)
	}
}

// A long cause was cut in the middle of a character.
func TestOnEndEnv_IsText(t *testing.T) {
	t.Parallel()
	for _, v := range onEndEnv(redrive.Outcome{Cause: "x" + strings.Repeat("é", longestVariable)}, "aborted", exitFailedAgain) {
		if name, text, _ := strings.Cut(v, "="); !utf8.ValidString(text) || len(text) > longestVariable {
			t.Errorf("%s has %d bytes, the last are %q", name, len(text), text[len(text)-1:])
		}
	}
}

// A command is often a script of somebody else's, which prints its environment when it fails.
func TestEnding_CommandInheritsNoSecret(t *testing.T) {
	t.Setenv("ACME_KAFKA_PASSWORD", "hunter2")
	b := newBroker(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("profiles:\n  prod:\n    sasl-password-env: ACME_KAFKA_PASSWORD\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := pflag.NewFlagSet("redrive", pflag.ContinueOnError)
	tl, words := quietTool(nil)
	tl.env.Getenv, tl.flags = func(string) string { return "" }, connect.AddFlags(set)
	if err := set.Parse([]string{"--brokers", b.addr, "--config", config}); err != nil {
		t.Fatal(err)
	}
	target, err := onend.Parse("env")
	if err != nil {
		t.Fatal(err)
	}
	err = tl.with(t.Context(), func(s *session) error {
		ending{target: target}.tell(s.tool, redrive.Outcome{ID: "r", Topic: "orders.dlq", State: redrive.Done}, nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tl.atEnd(t.Context(), exitDone)
	if got := words.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "REDRIVE_RESULT=done\n") {
		t.Error(got)
	}
}
