package roottest

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// ACLOn is a permission on a topic.
func ACLOn(topic string, op kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
}

// Guarded is a broker with letters of group billing, which has a member, and with a user ann, to
// whom the given permissions are granted.
func Guarded(t *testing.T, permissions []kfake.ACL) *Broker {
	t.Helper()
	admin := kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())
	b := NewBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "ann", "ann", permissions...)).Open(t, admin)
	for _, topic := range []string{"orders", "orders.retry.5s", "orders.dlq.ledger"} {
		b.Topic(t, topic, 1, nil)
	}
	// Its letters are as old as noon.
	b.Topic(t, "orders.dlq", 1, map[string]string{"retention.ms": "-1"})
	// A resolved letter, an open one, and a copy of the first. The ledger gets an entry about the
	// copy when the first letter is pruned.
	for _, offset := range []int64{7, 8, 7} {
		b.Produce(t, Letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Group: "billing", Attempts: 1, Original: headers.Position{Topic: "orders", Offset: offset, Timestamp: clitest.Noon}}))
	}
	b.Record(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada", Why: "x"})
	joined := make(chan struct{})
	member := b.Client(t, admin, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, _ map[string][]int32) { close(joined) }))
	<-joined
	member.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{"orders.retry.5s": {0: {Epoch: -1}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
			if err != nil || r.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Errorf("commit: %v, %+v", err, r)
			}
		})
	return b
}

// Kind is the kind of a resource, as errors name it.
func Kind(r kmsg.ACLResourceType) string {
	switch r {
	case kmsg.ACLResourceTypeGroup:
		return "group"
	case kmsg.ACLResourceTypeTransactionalId:
		return "transactional-id"
	}
	return "topic"
}

// DocumentedPermissions reads a column of the table.
func DocumentedPermissions(t *testing.T, column int) (permissions []kfake.ACL) {
	t.Helper()
	text, err := os.ReadFile("../../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### Permissions for redriving\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := regexp.MustCompile("^ (group|topic|transactional id) `([^`]+)`")
	operation := regexp.MustCompile("`([A-Z_]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		of := named.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		resource := map[string]kmsg.ACLResourceType{"topic": kmsg.ACLResourceTypeTopic, "group": kmsg.ACLResourceTypeGroup, "transactional id": kmsg.ACLResourceTypeTransactionalId}[of[1]]
		for _, m := range operation.FindAllStringSubmatch(cells[2+column], -1) {
			op, err := kmsg.ParseACLOperation(m[1])
			if err != nil {
				t.Fatal(err)
			}
			permissions = append(permissions, kfake.ACL{Resource: resource, Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true})
		}
	}
	if len(permissions) == 0 {
		t.Fatal("the table has no permissions")
	}
	return permissions
}
