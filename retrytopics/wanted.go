package retrytopics

import (
	"cmp"
	"maps"
	"strconv"
	"time"
)

type kind uint8

const (
	kindTier kind = iota
	kindDLQ
	kindLedger
)

// wanted describes one sibling as it should be.
type wanted struct {
	topic, source, dlq string
	kind               kind
	delay              time.Duration // of a tier
	partitions         int32
	replicas           int16
	configs            map[string]string
}

// wants derives the wanted siblings from a source.
func (s Spec) wants(sib Siblings, source *topic) []wanted {
	base := map[string]string{
		uncleanElection: "false",
		retentionBytes:  "-1",
		segmentMS:       millis(defaultSegment),
		// A copy's timestamp is the time of its writing. It comes from the broker's clock, so that
		// a client's wrong clock cannot make the copy expire early.
		timestampType: "LogAppendTime",
	}
	if n, ok := source.number(maxMessage); ok {
		base[maxMessage] = strconv.FormatInt(min(n+headroom, maxMessageLimit), 10)
	}
	replicas := int64(source.replicas)
	isr, known := source.number(minISR)
	if replicas >= replicasForTwoInSync {
		isr, known = max(isr, 2), true
	}
	if known {
		// A number above that of the replicas would refuse every write.
		base[minISR] = strconv.FormatInt(min(isr, replicas), 10)
	}
	for config, value := range s.Configs {
		if delete(base, config); value != nil {
			base[config] = *value
		}
	}

	one := func(name string, k kind, policy string, retention time.Duration) wanted {
		configs := maps.Clone(base)
		configs[cleanupPolicy] = policy
		configs[retentionMS] = "-1"
		if retention > 0 {
			configs[retentionMS] = millis(retention)
		}
		return wanted{
			topic: name, source: sib.Source, dlq: sib.DLQ, kind: k,
			partitions: source.partitions, replicas: source.replicas, configs: configs,
		}
	}
	var ws []wanted
	for _, t := range sib.Tiers {
		w := one(t.Topic, kindTier, "delete", s.RetentionOf(t.Delay))
		w.delay = t.Delay
		ws = append(ws, w)
	}
	dlq := s.dlqRetention()
	ledger := time.Duration(-1)
	if dlq > 0 {
		ledger = dlq + ledgerMargin
		segment, ok := base[segmentMS]
		if !ok { // left out: the brokers' default, which the source may have too
			segment = cmp.Or(source.configs[segmentMS], millis(brokerSegment))
		}
		if ms, err := strconv.ParseInt(segment, 10, 64); err == nil && ms < int64(365*day/time.Millisecond) {
			ledger = max(ledger, dlq+time.Duration(ms)*time.Millisecond+leastLedgerMargin)
		}
	}
	return append(ws,
		one(sib.DLQ, kindDLQ, "delete", dlq),
		one(sib.Ledger, kindLedger, "compact,delete", ledger))
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
