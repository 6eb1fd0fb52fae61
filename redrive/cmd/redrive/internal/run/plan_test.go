package run_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestPlan_ReportsWhatARunWouldDo(t *testing.T) {
	t.Parallel()
	s := roottest.InTrouble(t)
	type share struct {
		Letters             int64
		Topic, Class, Group string
		Partition           int32
	}
	var p struct {
		Topic                                string
		Letters                              int64
		SeenBy, Watched, Warnings            []string
		SendingMs                            *int64
		Skipped                              map[string]int64
		Targets, Classes, Partitions, Groups []share
	}
	got := s.Redrive(t, "plan", "orders.dlq", "-o", "json", "--rate", "10", "--ramp", "0")
	if err := json.Unmarshal([]byte(got.Stdout), &p); err != nil || got.Code != cli.ExitDone || got.Stderr != "" {
		t.Fatalf("%+v: %v", got, err)
	}
	if p.Topic != "orders.dlq" || p.Letters != 100 || fmt.Sprint(p.SeenBy) != "[billing]" || fmt.Sprint(p.Watched) != "[orders.retry.1s orders.retry.5s]" || p.SendingMs == nil || *p.SendingMs != 10_000 || p.Warnings == nil ||
		!slices.Equal(p.Targets, []share{{Letters: 100, Topic: "orders.retry.1s"}}) || !slices.Equal(p.Groups, []share{{Letters: 100, Group: "billing"}}) ||
		!slices.Equal(p.Classes, []share{{Letters: 60, Class: "tax"}, {Letters: 40, Class: "payment"}}) {
		t.Errorf("the plan is %+v", p)
	}
	roottest.Prints(t, s.Redrive(t, "plan", "orders.dlq", "-o", "json", "--rate", "0"), cli.ExitDone, `"sendingMs":null,"skipped":{},`, "")
	var sum int64
	for _, of := range p.Partitions {
		sum += of.Letters
	}
	if sum != 100 {
		t.Errorf("partitions have %+v", p.Partitions)
	}
	got = s.Redrive(t, "plan", "orders.dlq", "--class", "tax", "--target", "orders", "--wait")
	roottest.InOrder(t, got.Stdout,
		"LETTERS        60\n", "TARGET         orders\n", "SEEN BY        billing\n", "WATCHED        orders.retry.1s, orders.retry.5s\n", "SENDING TAKES  6s at 50 records a second\n",
		"LETTERS  CLASS\n     60  tax\n", "LETTERS  PARTITION\n",
	)
	if strings.Contains(got.Stdout, "EDITED") {
		t.Errorf("nothing is edited:\n%s", got.Stdout)
	}
	const nothing = `"edited":{"value":null,"setHeaders":[],"unsetHeaders":[]}`
	for _, c := range []struct {
		flags       []string
		table, json string
	}{
		{nil, "LETTERS        100\n", nothing},
		{[]string{"--set-header", "region=eu", "--unset-header", "trace"}, "EDITED         headers region, trace\n", `"edited":{"value":null,"setHeaders":["region"],"unsetHeaders":["trace"]}`},
		{[]string{"--value-file", roottest.Save(t, "x"), "--offset", "0:0"}, "EDITED         value (new)\n", `"edited":{"value":"new","setHeaders":[],"unsetHeaders":[]}`},
	} {
		for format, want := range map[string]string{"table": c.table, "json": c.json} {
			got := s.Redrive(t, append([]string{"plan", "orders.dlq", "-o", format}, c.flags...)...)
			roottest.Prints(t, got, cli.ExitDone, want, "", c.flags)
		}
	}
	for _, f := range output.Formats {
		got := s.Redrive(t, "runs", "orders.dlq", "-o", f)
		want := map[string]string{"json": "[]\n"}[f]
		roottest.Exactly(t, got, cli.ExitDone, want, "orders.dlq has no runs, or its ledger no longer has them\n")
	}
}

// A plan names all missing permissions at once, so that the operator asks for them once. They
// include those on the transactional ids, which only a run uses.
func TestPlan_NamesAllMissingPermissions(t *testing.T) {
	t.Parallel()
	all := slices.Concat(roottest.DocumentedPermissions(t, 0), roottest.DocumentedPermissions(t, 1))
	without := func(names ...string) (permissions []kfake.ACL) {
		for _, r := range all {
			if !slices.Contains(names, r.Operation.String()+" "+r.Name) {
				permissions = append(permissions, r)
			}
		}
		return permissions
	}
	ids := []string{"WRITE on transactional-id siding-redrive-orders.dlq-a", "WRITE on transactional-id siding-redrive-orders.dlq-b"}
	for name, c := range map[string]struct {
		permissions []kfake.ACL
		more        []string
		want        []string
	}{
		"only those to read": {permissions: roottest.DocumentedPermissions(t, 0), want: slices.Concat([]string{"WRITE on topic orders.dlq.ledger"}, ids, []string{"DESCRIBE on group billing"})},
		"some":               {permissions: without("READ orders.dlq", "WRITE siding-redrive-orders.dlq-b"), more: []string{"--offset", "0:1"}, want: []string{"DESCRIBE on topic orders.dlq"}},
		"the ledger, to read": {
			permissions: without("READ orders.dlq.ledger", "WRITE siding-redrive-orders.dlq-b"), want: []string{"READ on topic orders.dlq.ledger", ids[1]},
		},
		"on a target": {
			permissions: without("WRITE siding-redrive-orders.dlq-a"), more: []string{"--target", "orders"},
			want: []string{"DESCRIBE_CONFIGS on topic orders", "WRITE on topic orders", ids[0]},
		},
		"on a retry topic as the target": {
			permissions: without("READ orders.retry.5s", "WRITE orders.retry.5s"), more: []string{"--target", "orders.retry.5s"}, want: []string{"READ on topic orders.retry.5s", "WRITE on topic orders.retry.5s"},
		},
		"of retry topics": {
			permissions: without("READ orders.retry.5s", "WRITE orders.retry.5s"), want: []string{"READ on topic orders.retry.5s", "WRITE on topic orders.retry.5s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := roottest.Guarded(t, c.permissions).As("ann").Run(t, append([]string{"plan", "orders.dlq"}, c.more...)...)
			var named []string
			for _, m := range regexp.MustCompile(`not authorized: the user needs (.*): have it granted`).FindAllStringSubmatch(got.Stderr, -1) {
				named = append(named, m[1])
			}
			if got.Code != cli.ExitError || got.Stdout != "" || !slices.Equal(named, c.want) {
				t.Errorf("%+v, it names %q, want %q", got, named, c.want)
			}
		})
	}
}

// An incident has letters in several topics. What can't be planned in one of them does not hide the
// others.
func TestPlan_OfSeveralTopics(t *testing.T) {
	t.Parallel()
	s := roottest.InTrouble(t)
	s.Topic(t, "payments", 1, nil)
	s.Topic(t, "payments.dlq", 1, nil)
	s.Topic(t, "payments.dlq.ledger", 1, map[string]string{"cleanup.policy": "compact"})
	got := s.Redrive(t, "plan", "payments.dlq", "orders.dlq", "--class", "tax")
	if got.Code != cli.ExitRefused || !strings.HasPrefix(got.Stdout, "TOPIC          orders.dlq\n") || !strings.Contains(got.Stderr, "redrive: payments.dlq: refused: nothing selected") {
		t.Errorf("%+v", got)
	}
	s.Produce(t, roottest.Letter("payments.dlq", 0, 0, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Original: headers.Position{Topic: "payments", Timestamp: clitest.Noon}}))
	for format, want := range map[string]string{
		"table": "\n\nTOPIC          orders.dlq\n", "json": "[\n  {\"topic\":\"payments.dlq\",", "jsonl": "{\"topic\":\"payments.dlq\",",
	} {
		got := s.Redrive(t, "plan", "payments.dlq", "orders.dlq", "--class", "tax", "-o", format, "--target", "orders", "--wait")
		if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, want) || !strings.Contains(got.Stdout, "orders.dlq") {
			t.Errorf("%s: %+v", format, got)
		}
	}
	for _, c := range []struct{ args, message string }{
		{"orders.dlq payments.dlq --save x.plan", "--save is for one topic"}, {"orders.dlq orders.dlq", "orders.dlq is given twice"},
	} {
		roottest.Prints(t, s.Redrive(t, append([]string{"plan"}, strings.Fields(c.args)...)...), cli.ExitUsage, "", c.message)
	}
}
