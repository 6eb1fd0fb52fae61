package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// client returns a plain client, for the caller to close.
func (f *fixture) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(f.Opts(), opts...)...)
	must(t, err)
	return cl
}

// within returns a context with the fixture's deadline.
func (f *fixture) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), f.Patience)
}

// find waits for a record on a topic.
func (f *fixture) find(t *testing.T, topic string, is func(*kgo.Record) bool) *kgo.Record {
	t.Helper()
	cl := f.client(t, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200*time.Millisecond))
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	for {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("no such record on %s: %v", topic, err)
		}
		for _, r := range fetches.Records() {
			if is(r) {
				return r
			}
		}
	}
}

// admin sends an administrative request.
func (f *fixture) admin(t *testing.T, do func(context.Context, *kadm.Client) error) {
	t.Helper()
	cl := f.client(t)
	defer cl.Close()
	ctx, cancel := f.within()
	defer cancel()
	must(t, do(ctx, kadm.NewClient(cl)))
}

// count returns the number of offsets in use on a topic.
func (f *fixture) count(t *testing.T, topic string) (n int64) {
	t.Helper()
	f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
		ends, err := cl.ListEndOffsets(ctx, topic)
		ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
		return errors.Join(err, ends.Error())
	})
	return n
}

// topics returns the topics whose names begin with the fixture's.
func (f *fixture) topics(t *testing.T) (names []string) {
	t.Helper()
	f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
		all, err := cl.ListTopics(ctx)
		names = slices.DeleteFunc(all.Names(), func(name string) bool { return !strings.HasPrefix(name, f.topic) })
		return err
	})
	return names
}

// partitions returns the partitions of the source.
func (f *fixture) partitions(t *testing.T) (all kadm.PartitionDetails) {
	t.Helper()
	f.admin(t, func(ctx context.Context, admin *kadm.Client) error {
		topics, err := admin.ListTopics(ctx, f.topic)
		all = topics[f.topic].Partitions
		return err
	})
	return all
}

// committedNow returns the group's committed offset; -1 if there is none.
func (f *fixture) committedNow(t *testing.T, group, topic string, partition int32) int64 {
	t.Helper()
	return saidNow(t, f, group, topic, partition).At
}

// saidNow returns a group's commit on a partition: offset -1 if there is none.
func saidNow(t *testing.T, f *fixture, group, topic string, partition int32) kadm.Offset {
	t.Helper()
	said := kadm.Offset{At: -1}
	f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
		offsets, err := cl.FetchOffsets(ctx, group)
		if o, ok := offsets.Lookup(topic, partition); ok {
			said = o.Offset
		}
		return err
	})
	return said
}

// committed waits until the fixture's group has committed the offset.
func (f *fixture) committed(t *testing.T, topic string, partition int32, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d is committed on %s/%d", want, topic, partition), func() bool {
		return f.committedNow(t, f.group, topic, partition) == want
	})
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// deleteGroup deletes a group without members, as brokers do after a week.
func (f *fixture) deleteGroup(t *testing.T, group string) {
	t.Helper()
	f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
		eventually(t, "the group is deleted", func() bool {
			resp, err := cl.DeleteGroup(ctx, group)
			return err == nil && resp.Err == nil
		})
		return nil
	})
}

// limit sets a topic's max.message.bytes.
func (f *fixture) limit(t *testing.T, topic string, to int) {
	t.Helper()
	f.set(t, topic, "max.message.bytes", fmt.Sprint(to))
}

// set sets a topic's config.
func (f *fixture) set(t *testing.T, topic, name, value string) {
	t.Helper()
	f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
		rs, err := cl.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: name, Value: &value}}, topic)
		for _, r := range rs {
			err = errors.Join(err, r.Err)
		}
		return err
	})
}

// handledOnce waits until each record was handled, and none twice.
func (f *fixture) handledOnce(records []*kgo.Record) {
	for _, r := range records {
		f.Handled(r, 1)
	}
}

// stop ends a consumer in order.
func stop(t *testing.T, c *consumertest.Consumer) {
	t.Helper()
	must(t, c.Stop())
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
