package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/retrytopics"
)

// soonGranted is how long after a permission is granted everything that waited for it must work:
// copies are tried again within 15 s, and a retried record waits 5 s.
const soonGranted = 30 * time.Second

// endsWithout are the permissions without which Run ends at the start, with an error that names the
// missing one.
var endsWithout = []string{
	"READ on billing", "READ on orders",
	"DESCRIBE_CONFIGS on orders", "DESCRIBE_CONFIGS on orders.retry.5s", "DESCRIBE_CONFIGS on orders.dlq",
	"DESCRIBE on orders.dlq.ledger", "DESCRIBE_CONFIGS on orders.dlq.ledger",
	"CREATE on orders.retry.5s", "CREATE on orders.dlq", "CREATE on orders.dlq.ledger",
}

// Trap 31: a permission to write is granted after a refusal, and the producer stays failed until
// the process restarts. A broker refuses a producer id while the user may write to no topic, and
// kgo keeps that refusal for the client's life.
//
// docs/operations.md promises that a granted permission needs no restart. So each permission of its
// table is missing for some minutes: at the start, or while the consumer runs. An operator grants
// exactly the table, and a needless permission was never reviewed. So a consumer works with exactly
// the table, and lacks each permission of it in one of the two cases.
func TestConsumer_GrantedPermissionNeedsNoRestart(t *testing.T) {
	t.Parallel()
	always, verify, create := documentedPermissions(t)
	for _, of := range []struct {
		mode        retrytopics.Mode
		permissions []kfake.ACL
		others      []kfake.ACL
	}{
		{retrytopics.Off, always, nil},
		{retrytopics.Verify, verify, always},
		{retrytopics.Create, create, slices.Concat(always, verify)},
	} {
		for i, permission := range of.permissions {
			if cases.Few && i%4 > 0 { // another permission of the same kind meets the same code
				continue
			}
			others := slices.Concat(of.others, of.permissions[:i], of.permissions[i+1:])
			name := fmt.Sprint(permission.Operation, " on ", permission.Name)
			t.Run("without "+name, func(t *testing.T) {
				t.Parallel()
				missed := granted(t, of.mode, others, []kfake.ACL{permission}, slices.Contains(endsWithout, name))
				if again := withdrawn(t, of.mode, others, []kfake.ACL{permission}); !missed && !again {
					t.Error("works as well without it")
				}
			})
		}
	}
	var write []kfake.ACL
	others := slices.DeleteFunc(slices.Clone(always), func(r kfake.ACL) bool {
		if r.Operation == kmsg.ACLOperationWrite {
			write = append(write, r)
			return true
		}
		return false
	})
	t.Run("without any WRITE", func(t *testing.T) {
		t.Parallel()
		granted(t, retrytopics.Off, others, write, false)
		withdrawn(t, retrytopics.Off, others, write)
	})
}

// A group was renamed, and a tier left the configuration while a record waited there. The
// permissions on both stand in the table without a name. With exactly these the record runs. With
// one of them missing it does not, nor with no more than DESCRIBE in its place.
func TestConsumer_NeedsTheDocumentedPermissionsOnWhatItLeft(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	always, _, _ := documentedPermissions(t)
	left := permissionsOnWhatItLeft(t)
	if !continues(t, slices.Concat(always, left)) {
		t.Error("does not continue with exactly the table")
	}
	for i, permission := range left {
		others := slices.Concat(always, left[:i], left[i+1:])
		if continues(t, others) {
			t.Errorf("works as well without %v on %s", permission.Operation, permission.Name)
		}
		if less := permission; less.Operation != kmsg.ACLOperationDescribe {
			if less.Operation = kmsg.ACLOperationDescribe; continues(t, append(others, less)) {
				t.Errorf("works as well with DESCRIBE on %s", permission.Name)
			}
		}
	}
}

// permissionsOnWhatItLeft reads those rows of the table that name no group or topic.
func permissionsOnWhatItLeft(t *testing.T) (left []kfake.ACL) {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "../docs/operations.md"), "\n## Permissions\n")
	for row, of := range map[string]kfake.ACL{
		"group in `FormerGroups`":     {Resource: kmsg.ACLResourceTypeGroup, Name: "invoicing"},
		"retry topic that is drained": {Resource: kmsg.ACLResourceTypeTopic, Name: "orders.retry.1m"},
	} {
		m := regexp.MustCompile("\n\\| " + row + " \\| `([A-Z_]+)` \\| \\| \\|\n").FindStringSubmatch(table)
		if m == nil {
			t.Fatalf("the table has no permission on a %s", row)
		}
		operation, err := kmsg.ParseACLOperation(m[1])
		if err != nil {
			t.Fatal(err)
		}
		of.Pattern, of.Operation, of.Allow = kmsg.ACLResourcePatternTypeLiteral, operation, true
		left = append(left, of)
	}
	return left
}

// continues runs a consumer with these permissions after one of another group, which had one more
// tier. It reports whether the record that waits there runs, and the one that came meanwhile.
func continues(t *testing.T, permissions []kfake.ACL) (done bool) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceWith(t, retrytopics.Off, permissions...)
		s.source()
		if _, err := s.admin.CreateTopic(t.Context(), 1, -1, nil, "orders.retry.1m"); err != nil {
			t.Fatal(err)
		}
		before, err := consumer.New(consumer.Config{
			Group: "invoicing", Topics: []string{"orders"}, Kafka: s.admins, Logger: slog.New(slog.DiscardHandler),
			Policy:    consumer.Policy{Tiers: []time.Duration{5 * time.Second, time.Minute}, Jitter: -1},
			Provision: retrytopics.Spec{Mode: retrytopics.Off},
			Handler:   func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) },
		})
		if err != nil {
			t.Fatal(err)
		}
		s.put(0, "later")
		// its copy is on the second tier
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := before.Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.put(0, "never")
		s.former = []string{"invoicing"}
		s.start()
		time.Sleep(3 * time.Minute)
		done = s.committed("orders.retry.1m", 0) == 1 && s.committed("orders", 0) == 2
		s.end()
		if err := <-s.ended; err != nil {
			t.Logf("it lacks what it needs at its start: %v", err)
		}
		ends, err := s.admin.ListEndOffsets(t.Context(), "orders.retry.5s", "orders.retry.1m")
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range []string{"orders.retry.5s", "orders.retry.1m"} {
			if o, _ := ends.Lookup(topic, 0); o.Offset != 1 {
				t.Errorf("%d copies are on %s, want the 1 of the former group", o.Offset, topic)
			}
		}
	})
	return done
}

// documentedPermissions reads the table: the permissions that are always needed, those needed
// unless the mode is Off, and those needed with Create.
func documentedPermissions(t *testing.T) (always, verify, create []kfake.ACL) {
	t.Helper()
	_, table, ok := strings.Cut(read(t, "../docs/operations.md"), "\n## Permissions\n")
	table, _, _ = strings.Cut(table, "\n## ")
	name := regexp.MustCompile("^ (group|topic) `([^`]+)`")
	permission := regexp.MustCompile("`([A-Z_]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		of := name.FindStringSubmatch(cells[1])
		if of == nil {
			continue
		}
		resource := kmsg.ACLResourceTypeTopic
		if of[1] == "group" {
			resource = kmsg.ACLResourceTypeGroup
		}
		for i, into := range []*[]kfake.ACL{&always, &verify, &create} {
			for _, m := range permission.FindAllStringSubmatch(cells[2+i], -1) {
				operation, err := kmsg.ParseACLOperation(m[1])
				if err != nil {
					t.Fatal(err)
				}
				*into = append(*into, kfake.ACL{
					Resource: resource, Name: of[2], Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true,
				})
			}
		}
	}
	if !ok || len(always) == 0 || len(verify) == 0 || len(create) == 0 {
		t.Fatalf("docs/operations.md has no table of permissions: %v %v %v", always, verify, create)
	}
	return always, verify, create
}

// granted runs a consumer without some permissions, then grants them. It reports whether they were
// missed.
func granted(t *testing.T, mode retrytopics.Mode, permissions, missing []kfake.ACL, ends bool) (missed bool) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceWith(t, mode, permissions...)
		s.source()
		s.start()
		s.produce(0)
		time.Sleep(3 * time.Minute)
		select {
		case err := <-s.ended:
			if !ends || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", missing[0].Name)) {
				t.Fatalf("the consumer ended with %v, want an error that names %v, if at all", err, missing)
			}
			missed = true
			return
		default:
		}
		if ends {
			t.Fatal("the consumer runs, and ought to say what is missing")
		}
		missed = !s.isDone(0, 2)
		s.grant(missing...)
		s.over(0, 2)
	})
	return missed
}

// withdrawn takes permissions away while a consumer runs, and gives them back. It reports whether
// they were missed.
func withdrawn(t *testing.T, mode retrytopics.Mode, permissions, gone []kfake.ACL) (missed bool) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceWith(t, mode, slices.Concat(permissions, gone)...)
		s.source()
		s.start()
		s.produce(0)
		s.done(0, 2)
		s.withdraw(gone...)
		s.produce(0)
		if mode == retrytopics.Create {
			s.grow(2)
			s.produce(1)
		}
		time.Sleep(3 * time.Minute)
		missed = !s.isDone(0, 4) || mode == retrytopics.Create && !s.isDone(1, 2)
		ended := false
		if !missed { // while it runs; at its start a consumer looks at all siblings
			s.end()
			if err := <-s.ended; err != nil {
				t.Errorf("the consumer ended with %v", err)
			}
			s.start()
			select {
			case err := <-s.ended:
				missed, ended = err != nil, true
			case <-time.After(time.Minute):
			}
		}
		s.grant(gone...)
		if ended {
			s.start()
		}
		if mode == retrytopics.Create {
			s.done(1, 2)
		}
		s.over(0, 4)
	})
	return missed
}

// serviceWith starts a broker and prepares a consumer with these permissions.
func serviceWith(t *testing.T, mode retrytopics.Mode, permissions ...kfake.ACL) *grantee {
	t.Helper()
	var vn kfake.VirtualNetwork
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "billing", "secret", permissions...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	if mode == retrytopics.Off {
		cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			t.Error("with Off settings of topics are read, for which the consumer need have no permission")
			return nil, nil, false
		})
	}
	as := func(user string) []kgo.Opt {
		return []kgo.Opt{
			kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext), kgo.SASL(plain.Auth{User: user, Pass: "secret"}.AsMechanism()),
		}
	}
	cl, err := kgo.NewClient(append(as("admin"), kgo.MetadataMinAge(50*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &grantee{t: t, admin: kadm.NewClient(cl), client: cl, kafka: as("billing"), admins: as("admin"), mode: mode}
}

// grantee is a consumer whose permissions change, and a client with fixed ones.
type grantee struct {
	t        *testing.T
	admin    *kadm.Client
	client   *kgo.Client
	kafka    []kgo.Opt
	admins   []kgo.Opt
	mode     retrytopics.Mode
	former   []string
	c        *consumer.Consumer
	ended    chan error
	end      context.CancelFunc
	expelled bool // it lost the permission on its group meanwhile
}

// source creates the topics that the consumer does not create.
func (s *grantee) source() {
	topics := []string{"orders"}
	if s.mode != retrytopics.Create {
		topics = append(topics, "orders.retry.5s", "orders.dlq", "orders.dlq.ledger")
	}
	for _, topic := range topics {
		if _, err := s.admin.CreateTopic(s.t.Context(), 1, -1, nil, topic); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *grantee) start() {
	s.t.Helper()
	c, err := consumer.New(consumer.Config{
		Group: "billing", FormerGroups: s.former, Topics: []string{"orders"}, Kafka: s.kafka, Logger: slog.New(slog.DiscardHandler),
		Policy:    consumer.Policy{Tiers: []time.Duration{5 * time.Second}, Jitter: -1},
		Provision: retrytopics.Spec{Mode: s.mode},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			switch {
			case string(r.Value) == "never":
				return classify.Terminal(errBusy)
			case consumer.DeliveryOf(ctx, r).Attempt == 1:
				return classify.Retryable(errBusy)
			}
			return nil
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.c, s.end, s.ended = c, cancel, make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ended <- c.Run(ctx)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// produce writes a record that will be retried and a record that will be dead-lettered.
func (s *grantee) produce(partition int32) {
	s.t.Helper()
	s.put(partition, "later")
	s.put(partition, "never")
}

func (s *grantee) put(partition int32, value string) {
	s.t.Helper()
	if err := s.client.ProduceSync(s.t.Context(), &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *grantee) grow(to int) {
	s.t.Helper()
	if _, err := s.admin.UpdatePartitions(s.t.Context(), to, "orders"); err != nil {
		s.t.Fatal(err)
	}
	s.client.ForceMetadataRefresh()
	time.Sleep(time.Second)
}

// isDone reports whether all records of a partition were retried or dead-lettered, and their
// offsets are committed.
func (s *grantee) isDone(partition int32, records int64) bool {
	return s.committed("orders", partition) == records && s.committed("orders.retry.5s", partition) == records/2
}

// done waits until all records of a partition were retried or dead-lettered, once each, and their
// offsets are committed.
func (s *grantee) done(partition int32, records int64) {
	s.t.Helper()
	since := time.Now()
	for !s.isDone(partition, records) {
		select {
		case err := <-s.ended:
			s.t.Fatalf("the consumer ended: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(since) > soonGranted {
			s.t.Fatalf("the group is at %d of %d on the source and at %d of %d on the retry topic %v after the permission was granted; health is %+v",
				s.committed("orders", partition), records, s.committed("orders.retry.5s", partition), records/2, time.Since(since), s.c.Health())
		}
	}
	ends, err := s.admin.ListEndOffsets(s.t.Context(), "orders.retry.5s", "orders.dlq")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, topic := range []string{"orders.retry.5s", "orders.dlq"} {
		// An expelled member runs uncommitted records again.
		if o, _ := ends.Lookup(topic, partition); o.Offset < records/2 || o.Offset > records/2 && !s.expelled {
			s.t.Errorf("%d copies on %s/%d, want %d, one of each", o.Offset, topic, partition, records/2)
		}
	}
}

// over calls done, then ends the consumer.
func (s *grantee) over(partition int32, records int64) {
	s.t.Helper()
	s.done(partition, records)
	for since := time.Now(); !s.c.Health().OK; time.Sleep(100 * time.Millisecond) {
		if time.Since(since) > 2*time.Minute { // a refusal to read counts for one
			s.t.Fatalf("health stays %+v", s.c.Health())
		}
	}
	s.end()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

func (s *grantee) grant(permissions ...kfake.ACL) {
	s.t.Helper()
	for _, permission := range permissions {
		rs, err := s.admin.CreateACLs(s.t.Context(), rule(permission))
		if err != nil || rs[0].Err != nil {
			s.t.Fatal(err, rs)
		}
	}
}

func (s *grantee) withdraw(permissions ...kfake.ACL) {
	s.t.Helper()
	for _, permission := range permissions {
		s.expelled = s.expelled || permission.Resource == kmsg.ACLResourceTypeGroup
		rs, err := s.admin.DeleteACLs(s.t.Context(), rule(permission))
		if err != nil || rs[0].Err != nil || len(rs[0].Deleted) != 1 {
			s.t.Fatal(err, rs)
		}
	}
}

// rule is a permission of the service as a client names it.
func rule(permission kfake.ACL) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow("User:billing").AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(permission.Operation)
	if permission.Resource == kmsg.ACLResourceTypeGroup {
		return b.Groups(permission.Name)
	}
	return b.Topics(permission.Name)
}

func (s *grantee) committed(topic string, partition int32) int64 {
	inGroup, err := s.admin.FetchOffsets(s.t.Context(), "billing")
	if err != nil {
		return -1
	}
	o, ok := inGroup.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return o.At
}
