package retrytopics

import (
	"maps"
	"testing"
	"time"
)

func TestWanted_SiblingsTakeAfterTheirSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		source   topic
		spec     Spec
		want     map[string]string // of the dead-letter topic; "" is not set
		ledgerMS string
	}{
		{
			"three replicas, one in sync",
			topic{replicas: 3, configs: map[string]string{minISR: "1", maxMessage: "1000"}},
			Spec{},
			map[string]string{minISR: "2", maxMessage: "66536", retentionMS: millis(14 * day)},
			millis(21 * day),
		},
		{
			"a stricter source",
			topic{replicas: 5, configs: map[string]string{minISR: "4"}},
			Spec{},
			map[string]string{minISR: "4", maxMessage: ""},
			millis(21 * day),
		},
		{
			"a source that accepts no write",
			topic{replicas: 2, configs: map[string]string{minISR: "3"}},
			Spec{},
			map[string]string{minISR: "2"},
			millis(21 * day),
		},
		{
			"one replica",
			topic{replicas: 1, configs: map[string]string{minISR: "1", maxMessage: "2147483647"}},
			Spec{},
			map[string]string{minISR: "1", maxMessage: "2147483647"},
			millis(21 * day),
		},
		{
			"nothing known of the source",
			topic{replicas: 2},
			Spec{},
			map[string]string{minISR: "", maxMessage: ""},
			millis(21 * day),
		},
		{
			"chosen by the user",
			topic{replicas: 3, configs: map[string]string{minISR: "1"}},
			Spec{DLQRetention: 30 * day, Configs: map[string]*string{segmentMS: new(millis(10 * day)), minISR: new("1"), "compression.type": new("zstd")}},
			map[string]string{minISR: "1", segmentMS: millis(10 * day), "compression.type": "zstd", retentionMS: millis(30 * day)},
			millis(41 * day),
		},
		{
			"left out, as the cluster refuses it",
			topic{replicas: 3, configs: map[string]string{segmentMS: millis(20 * day)}},
			Spec{Configs: map[string]*string{segmentMS: nil, uncleanElection: nil}},
			map[string]string{segmentMS: "", uncleanElection: "", timestampType: "LogAppendTime"},
			millis(35 * day),
		},
		{
			"for ever",
			topic{replicas: 3},
			Spec{DLQRetention: -1},
			map[string]string{retentionMS: "-1"},
			"-1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ws := c.spec.wants(mustSiblings(t, Naming{}, "orders"), &c.source)
			dlq, ledger := ws[0], ws[1]
			for config, want := range c.want {
				if got := dlq.configs[config]; got != want {
					t.Errorf("%s = %q, want %q", config, got, want)
				}
			}
			if got := ledger.configs[retentionMS]; got != c.ledgerMS {
				t.Errorf("the ledger's retention = %s, want %s", got, c.ledgerMS)
			}
		})
	}
}

func TestWanted_IsNeverRefused(t *testing.T) {
	t.Parallel()
	source := topic{partitions: 3, replicas: 3, configs: map[string]string{minISR: "2", maxMessage: "1048588"}}
	for _, spec := range []Spec{
		{},
		{TierRetention: -1, DLQRetention: -1},
		{TierRetention: 24 * time.Hour, DLQRetention: time.Hour},
		{Configs: map[string]*string{segmentMS: new("9223372036854775807")}},
	} {
		ws := spec.wants(mustSiblings(t, Naming{}, "orders", Cautious...), &source)
		made := map[string]*topic{}
		for _, w := range ws {
			made[w.topic] = &topic{partitions: w.partitions, replicas: w.replicas, configs: maps.Clone(w.configs)}
		}
		for _, w := range ws {
			differences, refusals := w.compare(made[w.topic], made[w.dlq])
			if len(refusals) > 0 || len(differences) > 0 && spec.Configs == nil {
				t.Errorf("%+v: %s as created: refusals %v, differences %v", spec, w.topic, refusals, differences)
			}
		}
	}
}
