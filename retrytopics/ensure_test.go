package retrytopics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEnsure_CreatesSiblingsThatLoseNothing(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 6, map[string]string{"max.message.bytes": "2000000"})
		s := mustSiblings(t, Naming{}, "orders", 5*time.Second, 5*24*time.Hour)
		r, err := Ensure(t.Context(), adm, Spec{}, s)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Created, s.Topics()) {
			t.Errorf("created %q, want %q", r.Created, s.Topics())
		}
		if len(r.Differences) != 0 || len(r.Grown) != 0 {
			t.Errorf("report = %+v, want nothing but what was created", r)
		}
		days := func(n int) string { return millis(time.Duration(n) * day) }
		for topic, want := range map[string]map[string]string{
			"orders.retry.5s":   {"cleanup.policy": "delete", "retention.ms": days(7)},
			"orders.retry.120h": {"cleanup.policy": "delete", "retention.ms": days(10)},
			"orders.dlq":        {"cleanup.policy": "delete", "retention.ms": days(14)},
			"orders.dlq.ledger": {"cleanup.policy": "compact,delete", "retention.ms": days(21)},
		} {
			want["retention.bytes"] = "-1"
			want["segment.ms"] = days(1)
			want["message.timestamp.type"] = "LogAppendTime"
			want["min.insync.replicas"] = "2"
			want["max.message.bytes"] = "2065536"
			if got := r.Partitions[topic]; got != 6 {
				t.Errorf("%s: the report says %d partitions, want 6", topic, got)
			}
			got := configsOf(t, adm, topic)
			for config, want := range want {
				if got[config] != want {
					t.Errorf("%s: %s = %q, want %q", topic, config, got[config], want)
				}
			}
		}
		topics, err := describe(t.Context(), adm, s.Topics())
		if err != nil {
			t.Fatal(err)
		}
		for name, topic := range topics {
			if topic.partitions != 6 || topic.replicas != 3 {
				t.Errorf("%s has %d partitions and %d replicas, want 6 and 3", name, topic.partitions, topic.replicas)
			}
		}
	})
}

func TestEnsure_AgainChangesAndReportsNothing(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 6, nil)
		s := mustSiblings(t, Naming{}, "orders", Default...)
		if _, err := Ensure(t.Context(), adm, Spec{}, s); err != nil {
			t.Fatal(err)
		}
		creates, grows := count(c, kmsg.CreateTopics), count(c, kmsg.CreatePartitions)
		for _, mode := range []Mode{Create, Verify} {
			r, err := Ensure(t.Context(), adm, Spec{Mode: mode}, s)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := r.String(), "siblings are as wanted"; got != want {
				t.Errorf("%s: report = %q, want %q", mode, got, want)
			}
			if r.Partitions["orders"] != 6 || r.Partitions["orders.dlq"] != 6 {
				t.Errorf("%s: partitions = %v, want 6 each", mode, r.Partitions)
			}
		}
		if *creates+*grows != 0 {
			t.Errorf("%d requests to create and %d to grow, want none", *creates, *grows)
		}
	})
}

func TestEnsure_ManySourcesCostFewRequests(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		var all []Siblings
		for i := range 40 {
			name := fmt.Sprintf("topic-%d", i)
			createTopic(t, c, name, int32(1+i%2), nil)
			all = append(all, mustSiblings(t, Naming{}, name, Default...))
		}
		// A first request connects and learns the brokers.
		exists(t, adm, "topic-0")
		metadata, configs, creates := count(c, kmsg.Metadata), count(c, kmsg.DescribeConfigs), count(c, kmsg.CreateTopics)
		r, err := Ensure(t.Context(), adm, Spec{}, all...)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Created) != 40*5 {
			t.Errorf("created %d topics, want %d", len(r.Created), 40*5)
		}
		// Two counts of partitions; tiers, dead letters and ledgers differ.
		if *metadata > 2 || *configs != 1 || *creates != 6 {
			t.Errorf("%d metadata, %d configs, %d create requests; want at most 2, 1, 6", *metadata, *configs, *creates)
		}
	})
}

func TestEnsure_SiblingsGrowWithTheirSource(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 3, nil)
		s := mustSiblings(t, Naming{}, "orders", 5*time.Second)
		if _, err := Ensure(t.Context(), adm, Spec{}, s); err != nil {
			t.Fatal(err)
		}
		// Another client grows them, which our client's cache does not show. The dead-letter topic
		// then has more than it needs and stays.
		other := c.admin(t)
		defer other.Close()
		if _, err := other.UpdatePartitions(t.Context(), 9, "orders.dlq"); err != nil {
			t.Fatal(err)
		}
		if _, err := other.UpdatePartitions(t.Context(), 6, "orders"); err != nil {
			t.Fatal(err)
		}

		_, err := Ensure(t.Context(), adm, Spec{Mode: Verify}, s)
		var refused *ProvisionError
		if !errors.As(err, &refused) {
			t.Fatalf("verify: error %v, want a ProvisionError", err)
		}
		if want := []string{"orders.retry.5s", "orders.dlq.ledger"}; !slices.Equal(refused.Topics, want) {
			t.Errorf("verify: topics %q, want %q", refused.Topics, want)
		}
		if want := `kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --alter --topic orders.retry.5s --partitions 6`; refused.Commands[0] != want {
			t.Errorf("verify: command %q, want %q", refused.Commands[0], want)
		}

		r, err := Ensure(t.Context(), adm, Spec{}, s)
		if err != nil {
			t.Fatal(err)
		}
		if want := []Growth{{"orders.retry.5s", 3, 6}, {"orders.dlq.ledger", 3, 6}}; !slices.Equal(r.Grown, want) {
			t.Errorf("grown = %v, want %v", r.Grown, want)
		}
		if want := map[string]int32{"orders": 6, "orders.retry.5s": 6, "orders.dlq": 9, "orders.dlq.ledger": 6}; !maps.Equal(r.Partitions, want) {
			t.Errorf("partitions = %v, want %v", r.Partitions, want)
		}
		if want := "grew orders.retry.5s from 3 to 6 partitions\ngrew orders.dlq.ledger from 3 to 6 partitions"; r.String() != want {
			t.Errorf("report = %q, want %q", r, want)
		}
	})
}

func TestEnsure_NamesAMissingSourceFirst(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 1, nil)
		_, err := Ensure(t.Context(), adm, Spec{},
			mustSiblings(t, Naming{}, "orders"), mustSiblings(t, Naming{}, "payments"), mustSiblings(t, Naming{}, "refunds"))
		if err == nil || !strings.Contains(err.Error(), `"payments" does not exist: create it`) || !strings.Contains(err.Error(), `"refunds" does not exist`) {
			t.Errorf("error %v does not name both topics", err)
		}
		if got := exists(t, adm, "orders.dlq", "payments.dlq"); len(got) > 0 {
			t.Errorf("%q were created", got)
		}
	})
}

func TestEnsure_VerifyListsCommandsAndChangesNothing(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 6, nil)
		s := mustSiblings(t, Naming{}, "orders", 5*time.Second)
		createTopic(t, c, "orders.dlq", 6, map[string]string{"cleanup.policy": "compact"})
		_, err := Ensure(t.Context(), adm, Spec{Mode: Verify, Configs: map[string]*string{"follower.replication.throttled.replicas": new("*")}}, s)
		want := `retrytopics: topic "orders.dlq" has cleanup.policy=compact: compaction deletes records that share a key; run
kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --topic orders.dlq --add-config cleanup.policy=delete
topics are missing or have too few partitions; run
kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --create --topic orders.retry.5s --partitions 6 --replication-factor 3 --config cleanup.policy=delete --config 'follower.replication.throttled.replicas=*' --config max.message.bytes=1114124 --config message.timestamp.type=LogAppendTime --config min.insync.replicas=2 --config retention.bytes=-1 --config retention.ms=604800000 --config segment.ms=86400000 --config unclean.leader.election.enable=false
kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --create --topic orders.dlq.ledger --partitions 6 --replication-factor 3 --config cleanup.policy=compact,delete --config 'follower.replication.throttled.replicas=*' --config max.message.bytes=1114124 --config message.timestamp.type=LogAppendTime --config min.insync.replicas=2 --config retention.bytes=-1 --config retention.ms=1814400000 --config segment.ms=86400000 --config unclean.leader.election.enable=false`
		if err == nil || err.Error() != want {
			t.Errorf("error:\n%v\nwant:\n%s", err, want)
		}
		if got := exists(t, adm, s.Topics()...); !slices.Equal(got, []string{"orders.dlq"}) {
			t.Errorf("there are %q, want orders.dlq alone", got)
		}
	})
}

func TestEnsure_ListsCommandsItHasNoPermissionFor(t *testing.T) {
	t.Parallel()
	for _, denial := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed} {
		onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
			createTopic(t, c, "orders", 2, nil)
			createTopic(t, c, "orders.dlq.ledger", 1, nil)
			c.Fault(
				kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "orders.dlq", Err: denial, Count: -1},
				kfake.Fault{Keys: []kmsg.Key{kmsg.CreatePartitions}, Topic: "orders.dlq.ledger", Err: denial, Count: -1},
			)
			r, err := Ensure(t.Context(), adm, Spec{}, mustSiblings(t, Naming{}, "orders", time.Second))
			var refused *ProvisionError
			if !errors.As(err, &refused) || !errors.Is(err, denial) {
				t.Fatalf("error %v, want a ProvisionError that is %v", err, denial)
			}
			if want := []string{"orders.dlq", "orders.dlq.ledger"}; !slices.Equal(refused.Topics, want) || len(refused.Commands) != 2 {
				t.Errorf("topics %q with commands %q, want %q with one each", refused.Topics, refused.Commands, want)
			}
			for _, want := range []string{"grant the operation CREATE", "grant the operation ALTER"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if want := []string{"orders.retry.1s"}; !slices.Equal(r.Created, want) {
				t.Errorf("report says %q were created, want %q", r.Created, want)
			}
		})
	}
}

func TestEnsure_NamesAMissingPermissionToDescribe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault kfake.Fault
		want  string
	}{
		{kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders.dlq"}, `describe topics ["orders.dlq"]: grant the operation DESCRIBE`},
		{kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Resource: "orders"}, `describe topic configs ["orders"]: grant the operation DESCRIBE_CONFIGS`},
	} {
		onKafka(t, func(t *testing.T, cluster *kafka, adm *kadm.Client) {
			createTopic(t, cluster, "orders", 2, nil)
			createTopic(t, cluster, "payments", 2, nil)
			c.fault.Err, c.fault.Count = kerr.TopicAuthorizationFailed, -1
			cluster.Fault(c.fault)
			_, err := Ensure(t.Context(), adm, Spec{}, mustSiblings(t, Naming{}, "payments"), mustSiblings(t, Naming{}, "orders"))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, kerr.TopicAuthorizationFailed) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if cluster.TopicInfo("payments.dlq") != nil {
				t.Error("siblings were created")
			}
		})
	}
}

func TestEnsure_ReportsTheRefusalOfEachTopic(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 2, nil)
		createTopic(t, c, "orders.dlq.ledger", 1, nil)
		c.Fault(
			kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "orders.retry.1s", Err: kerr.PolicyViolation},
			kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "orders.dlq", Err: kerr.InvalidReplicationFactor},
			kfake.Fault{Keys: []kmsg.Key{kmsg.CreatePartitions}, Topic: "orders.dlq.ledger", Err: kerr.ReassignmentInProgress},
		)
		_, err := Ensure(t.Context(), adm, Spec{}, mustSiblings(t, Naming{}, "orders", time.Second))
		for _, want := range []error{kerr.PolicyViolation, kerr.InvalidReplicationFactor, kerr.ReassignmentInProgress} {
			if !errors.Is(err, want) {
				t.Errorf("error %v is not %v", err, want)
			}
		}
	})
}

// A cluster's policy may refuse a config that siding sets, also to a value that is the default. The
// error names the way out, and that works: for new topics, and for those that exist.
func TestEnsure_LeavesOutWhatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, cluster *kafka, adm *kadm.Client) {
		createTopic(t, cluster, "orders", 2, nil)
		cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			create := req.(*kmsg.CreateTopicsRequest)
			resp := create.ResponseKind().(*kmsg.CreateTopicsResponse)
			for _, asked := range create.Topics {
				for _, config := range asked.Configs {
					if config.Name == timestampType {
						rt := kmsg.NewCreateTopicsResponseTopic()
						rt.Topic, rt.ErrorCode, rt.ErrorMessage = asked.Topic, kerr.PolicyViolation.Code, new(timestampType+" must not be set")
						resp.Topics = append(resp.Topics, rt)
					}
				}
			}
			return resp, nil, len(resp.Topics) > 0
		})
		siblings := mustSiblings(t, Naming{}, "orders")
		_, err := Ensure(t.Context(), adm, Spec{}, siblings)
		const wayOut = "(message.timestamp.type must not be set); to leave message.timestamp.type out, give it the value nil in Spec.Configs"
		if !errors.Is(err, kerr.PolicyViolation) || !strings.Contains(err.Error(), wayOut) {
			t.Errorf("error %v, want %q in it", err, wayOut)
		}
		for range 2 {
			report, err := Ensure(t.Context(), adm, Spec{Configs: map[string]*string{timestampType: nil}}, siblings)
			if err != nil || len(report.Differences) > 0 {
				t.Errorf("without the config: %v, differences %v", err, report.Differences)
			}
		}
	})
}

func TestEnsure_RefusesTopicsThatWouldLoseRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topic   string
		configs map[string]string
		want    string // empty: no refusal
	}{
		{"orders.retry.5m", map[string]string{"cleanup.policy": "compact"}, "compaction deletes records that share a key"},
		{"orders.retry.5m", map[string]string{"cleanup.policy": "compact,delete"}, "compaction"},
		{"orders.dlq", map[string]string{"cleanup.policy": "delete, compact"}, "compaction"},
		{"orders.dlq.ledger", map[string]string{"cleanup.policy": "compact"}, ""},
		{"orders.retry.5m", map[string]string{"retention.ms": "3600000"}, "it needs 1h5m"},
		{"orders.retry.5m", map[string]string{"retention.ms": "3900000"}, ""},
		{"orders.retry.5m", map[string]string{"retention.ms": "-1"}, ""},
		{"orders.dlq", map[string]string{"retention.ms": "3600000"}, ""},
		{"orders.retry.5m", map[string]string{"retention.bytes": "1000000"}, "a limit by size"},
		{"orders.dlq", map[string]string{"retention.bytes": "1000000"}, "a limit by size"},
		{"orders.dlq.ledger", map[string]string{"retention.bytes": "1000000"}, "a limit by size"},
	} {
		t.Run(fmt.Sprint(c.topic, c.configs), func(t *testing.T) {
			t.Parallel()
			onKafka(t, func(t *testing.T, cluster *kafka, adm *kadm.Client) {
				createTopic(t, cluster, "orders", 2, nil)
				createTopic(t, cluster, c.topic, 2, c.configs)
				s := mustSiblings(t, Naming{}, "orders", 5*time.Minute)
				_, err := Ensure(t.Context(), adm, Spec{}, s)
				if c.want == "" {
					if err != nil {
						t.Errorf("refused: %v", err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.topic) {
					t.Errorf("error %v, want one that names %s and says %q", err, c.topic, c.want)
				}
				if got := exists(t, adm, s.Topics()...); len(got) != 1 {
					t.Errorf("there are %q, want nothing created", got)
				}
			})
		})
	}
}

func TestEnsure_ReportsDifferencesWithTheirCommand(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 2, nil)
		createTopic(t, c, "orders.dlq", 2, map[string]string{
			"retention.ms": millis(30 * day), "segment.ms": millis(2 * day), "message.timestamp.type": "LogAppendTime",
			"max.message.bytes": "1048588", "min.insync.replicas": "3",
		})
		createTopic(t, c, "orders.dlq.ledger", 2, map[string]string{
			"retention.ms": millis(21 * day), "cleanup.policy": "delete,compact", "message.timestamp.type": "LogAppendTime",
			"max.message.bytes": "9999999", "min.insync.replicas": "2", "segment.ms": millis(day),
		})
		r, err := Ensure(t.Context(), adm, Spec{Configs: map[string]*string{"compression.type": new("zstd")}}, mustSiblings(t, Naming{}, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		want := []Difference{
			{"orders.dlq", "compression.type", "zstd", "producer"},
			{"orders.dlq", "max.message.bytes", "1114124", "1048588"},
			{"orders.dlq", "segment.ms", "86400000", "172800000"},
			{"orders.dlq.ledger", "compression.type", "zstd", "producer"},
			// An entry must outlive its letter: 30 days, a segment and a day.
			{"orders.dlq.ledger", "retention.ms", millis(33 * day), millis(21 * day)},
		}
		if !slices.Equal(r.Differences, want) {
			t.Errorf("differences\n%v\nwant\n%v", r.Differences, want)
		}
		last := r.Differences[len(r.Differences)-1]
		if want := "orders.dlq.ledger has retention.ms=1814400000 (504h), wanted is 2851200000 (792h)"; last.String() != want {
			t.Errorf("difference = %q, want %q", last, want)
		}
		if want := `kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --topic orders.dlq.ledger --add-config retention.ms=2851200000`; last.Command() != want {
			t.Errorf("command = %q, want %q", last.Command(), want)
		}
		if !strings.Contains(r.String(), last.String()) {
			t.Errorf("report %q leaves out %q", r, last)
		}
	})
}

func TestEnsure_ConcurrentInstancesAllSucceed(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 4, nil)
		s := mustSiblings(t, Naming{}, "orders", Default...)
		errs := make(chan error)
		const instances = 8
		for range instances {
			go func() {
				r, err := Ensure(t.Context(), adm, Spec{}, s)
				if err == nil && r.Partitions["orders.dlq"] != 4 {
					err = fmt.Errorf("report says %v", r.Partitions)
				}
				errs <- err
			}()
		}
		for range instances {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestEnsure_GrowsATopicThatAnotherJustMade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy string
		ok     bool
	}{{"delete", true}, {"compact", false}} {
		onKafka(t, func(t *testing.T, cluster *kafka, adm *kadm.Client) {
			createTopic(t, cluster, "orders", 4, nil)
			cluster.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.DropControl()
				cluster.SleepControl(func() {
					if err := cluster.CreateTopic("orders.dlq", 1, map[string]string{"cleanup.policy": c.policy}); err != nil {
						t.Error(err)
					}
				})
				return nil, nil, false
			})
			r, err := Ensure(t.Context(), adm, Spec{}, mustSiblings(t, Naming{}, "orders"))
			if (err == nil) != c.ok {
				t.Errorf("%s: error %v", c.policy, err)
			}
			if want := []Growth{{"orders.dlq", 1, 4}}; !slices.Equal(r.Grown, want) {
				t.Errorf("%s: grown = %v, want %v", c.policy, r.Grown, want)
			}
			if want := []string{"orders.dlq.ledger"}; !slices.Equal(r.Created, want) {
				t.Errorf("%s: created = %v, want %v", c.policy, r.Created, want)
			}
			if c.ok && len(r.Differences) == 0 {
				t.Errorf("%s: the other instance's topic was not compared", c.policy)
			}
		})
	}
}

func TestEnsure_WaitsUntilTheClusterShowsItsTopics(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, c *kafka, adm *kadm.Client) {
		createTopic(t, c, "orders", 2, nil)
		s := mustSiblings(t, Naming{}, "orders")
		hidden := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders.dlq", Err: kerr.UnknownTopicOrPartition, Count: 5})
		r, err := Ensure(t.Context(), adm, Spec{}, s)
		if err != nil {
			t.Fatal(err)
		}
		if hidden.Hits() != 5 || r.Partitions["orders.dlq"] != 2 {
			t.Errorf("asked %d times, partitions %v; want 5 times until it shows", hidden.Hits(), r.Partitions)
		}
	})
}

// The broker that is asked may learn of a topic later than the one that created or showed it.
func TestEnsure_WaitsUntilEachBrokerKnowsTheTopics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key     kmsg.Key
		unknown int
		err     string
		want    time.Duration
	}{
		{kmsg.DescribeConfigs, 5, "", 310 * time.Millisecond},
		{kmsg.DescribeConfigs, -1, `describe configs of topic "orders"`, knownTimeout},
		{kmsg.Metadata, 5, "", 310 * time.Millisecond},
		{kmsg.Metadata, -1, `topic "orders" does not exist: create it`, knownTimeout},
	} {
		onKafka(t, func(t *testing.T, cluster *kafka, adm *kadm.Client) {
			createTopic(t, cluster, "orders", 2, nil)
			fault := kfake.Fault{Keys: []kmsg.Key{c.key}, Err: kerr.UnknownTopicOrPartition, Count: c.unknown}
			if c.key == kmsg.Metadata {
				fault.Topic = "orders"
			} else {
				fault.Resource = "orders"
			}
			cluster.Fault(fault)
			start := time.Now()
			_, err := Ensure(t.Context(), adm, Spec{}, mustSiblings(t, Naming{}, "orders"))
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s unknown %d times: %v", c.key.Name(), c.unknown, err)
			}
			if took := time.Since(start); took != c.want {
				t.Errorf("%s unknown %d times: it took %v, want %v", c.key.Name(), c.unknown, took, c.want)
			}
		})
	}
}

func TestEnsure_TheWaitIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deadline, want time.Duration
	}{{3 * time.Second, 3 * time.Second}, {time.Hour, visibleTimeout}} {
		onKafka(t, func(t *testing.T, cluster *kafka, adm *kadm.Client) {
			createTopic(t, cluster, "orders", 2, nil)
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders.dlq", Err: kerr.UnknownTopicOrPartition, Count: -1})
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			start := time.Now()
			r, err := Ensure(ctx, adm, Spec{}, mustSiblings(t, Naming{}, "orders"))
			if err == nil || !strings.Contains(err.Error(), "orders.dlq is not visible") {
				t.Errorf("error %v does not name the topic", err)
			}
			if took := time.Since(start); took != c.want {
				t.Errorf("waited %s, want %s", took, c.want)
			}
			if len(r.Created) != 2 {
				t.Errorf("report %+v forgets what was created", r)
			}
		})
	}
}

func TestEnsure_ModeOffAsksNothing(t *testing.T) {
	t.Parallel()
	r, err := Ensure(t.Context(), nil, Spec{Mode: Off}, mustSiblings(t, Naming{}, "orders"))
	if err != nil || len(r.Partitions) != 0 {
		t.Errorf("Ensure = %+v, %v; want nothing", r, err)
	}
}

func TestEnsure_RefusesAnInvalidSpecWithEachReason(t *testing.T) {
	t.Parallel()
	spec := Spec{
		Mode: 9, TierRetention: time.Hour, DLQRetention: time.Microsecond,
		Configs: map[string]*string{"": new("x"), "cleanup.policy": new("compact"), "retention.ms": new("1"), "retention.bytes": new("1"), "compression.type": new("zstd")},
	}
	_, err := Ensure(t.Context(), nil, spec, mustSiblings(t, Naming{}, "orders", time.Second, time.Hour), Siblings{Source: "orders.dlq", DLQ: "x", Ledger: "y"})
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{
		"unknown mode 9", `TierRetention 1h0m0s is too short for "orders.retry.1s"`, `too short for "orders.retry.1h"`, "it needs 2h0m0s at least",
		"DLQRetention 1µs", "empty name", "cleanup.policy", "retention.ms: use TierRetention", "retention.bytes", "is a source itself",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "compression.type") {
		t.Errorf("error %q refuses a config that is the user's to choose", err)
	}
}
