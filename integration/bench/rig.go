package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kinds of broker, as bench.json names them.
const (
	kindEmbedded = "kfake"
	kindKafka    = "kafka"
)

// programTimeout ends a program that hangs, beyond the outage that it waits for. The longest takes
// two minutes.
const programTimeout = 10 * time.Minute

// options are what the command line says about all benches.
type options struct {
	brokers  []string // empty: embedded
	arms     []string // empty: all that are compared, and ratios
	before   string   // binary of an earlier commit; empty: none
	rounds   int      // 0: the bench's own
	profiles string   // empty: none
	log      io.Writer
}

// A rig is the broker that one bench runs on, and what the bench has put
// there. Everything carries the rig's suffix, by which close finds it again.
type rig struct {
	name     string
	kind     string
	seeds    []string
	suffix   string
	profiles string
	last     bool // this is the last round
	cl       *kgo.Client
	admin    *kadm.Client
	stop     func() error // of the embedded broker
}

func newRig(ctx context.Context, name string, memory bool, o options) (*rig, error) {
	r := &rig{
		name:     name,
		kind:     kindKafka,
		seeds:    o.brokers,
		suffix:   fmt.Sprintf("%08x", rand.Uint32()),
		profiles: o.profiles,
		stop:     func() error { return nil },
	}
	if len(r.seeds) == 0 {
		seed, stop, err := startBroker(ctx, memory)
		if err != nil {
			return nil, fmt.Errorf("starting the embedded broker: %w", err)
		}
		r.kind, r.seeds, r.stop = kindEmbedded, []string{seed}, stop
	}
	// kadm lists topics from the client's cache if that is younger than this: a new topic would be
	// missing.
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.seeds...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	r.cl, r.admin = cl, kadm.NewClient(cl)
	if err := cl.Ping(ctx); err != nil {
		cl.Close()
		return nil, errors.Join(fmt.Errorf("reaching %s: %w", strings.Join(r.seeds, ","), err), r.stop())
	}
	return r, nil
}

// topic creates a topic of the given number of partitions, and waits until
// the broker shows it: it answers the request a moment before.
func (r *rig) topic(ctx context.Context, label string, partitions int32) (string, error) {
	name := fmt.Sprintf("bench-%s-%s", label, r.suffix)
	if _, err := r.admin.CreateTopic(ctx, partitions, -1, nil, name); err != nil {
		return "", fmt.Errorf("creating topic %s: %w", name, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		topics, err := r.admin.ListTopics(ctx, name)
		if err != nil {
			return "", fmt.Errorf("looking up %s: %w", name, err)
		}
		if len(topics[name].Partitions) == int(partitions) {
			return name, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-tick.C:
		}
	}
}

// group returns an unused group name.
func (r *rig) group(label string, round int) string {
	return fmt.Sprintf("bench-%s-%s-%d", label, r.suffix, round)
}

// run runs a job in a child process, of this build or of an earlier one. In the last round it is
// profiled, if asked for.
func (r *rig) run(ctx context.Context, label, exe string, j job) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, programTimeout+j.Down)
	defer cancel()
	j.Seeds = r.seeds
	if r.profiles != "" && r.last {
		path, err := filepath.Abs(filepath.Join(r.profiles, r.name+"-"+label+".pprof"))
		if err != nil {
			return report{}, err
		}
		j.Profile = path
	}
	return runChild(ctx, exe, j)
}

// filled returns the content of a topic.
func (r *rig) filled(ctx context.Context, topic string) (data, error) {
	ends, err := r.admin.ListEndOffsets(ctx, topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return data{}, fmt.Errorf("reading the end of %s: %w", topic, err)
	}
	d := data{Topic: topic, Ends: make([]int64, len(ends[topic]))}
	ends.Each(func(o kadm.ListedOffset) { d.Ends[o.Partition] = o.Offset })
	return d, nil
}

// consumed checks that the group has committed the whole topic: a program that skips records must
// not count as fast.
func (r *rig) consumed(ctx context.Context, group string, d data) error {
	committed, err := r.admin.FetchOffsets(ctx, group)
	if err != nil {
		return fmt.Errorf("reading the offsets of %s: %w", group, err)
	}
	for p, end := range d.Ends {
		if o, ok := committed.Lookup(d.Topic, int32(p)); !ok || o.At != end {
			return fmt.Errorf("group %s committed offset %d of %d on %s/%d", group, o.At, end, d.Topic, p)
		}
	}
	return nil
}

// close deletes what carries the rig's suffix and stops the broker.
func (r *rig) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := errors.Join(r.deleteTopics(ctx, ""), r.deleteGroups(ctx))
	r.cl.Close()
	return errors.Join(err, r.stop())
}

// topics lists the rig's topics whose name contains the label.
func (r *rig) topics(ctx context.Context, label string) ([]string, error) {
	topics, err := r.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	return slices.DeleteFunc(topics.Names(), func(t string) bool {
		return !strings.Contains(t, r.suffix) || !strings.Contains(t, label)
	}), nil
}

// size returns the disk space of the topics whose names contain the label.
func (r *rig) size(ctx context.Context, label string) (int64, error) {
	mine, err := r.topics(ctx, label)
	if err != nil {
		return 0, err
	}
	dirs, err := r.admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("reading the sizes of topics: %w", err)
	}
	var n int64
	dirs.Each(func(d kadm.DescribedLogDir) {
		for _, t := range mine {
			for _, p := range d.Topics[t] {
				n += p.Size
			}
		}
	})
	return n, nil
}

// deleteTopics deletes the rig's topics whose name contains the label.
func (r *rig) deleteTopics(ctx context.Context, label string) error {
	mine, err := r.topics(ctx, label)
	if err != nil || len(mine) == 0 {
		return err
	}
	deleted, err := r.admin.DeleteTopics(ctx, mine...)
	if err != nil {
		return fmt.Errorf("deleting topics: %w", err)
	}
	for _, t := range deleted.Sorted() {
		// The broker lists a topic for a moment after its deletion.
		if t.Err != nil && !errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("deleting topic %s: %w", t.Topic, t.Err)
		}
	}
	return nil
}

func (r *rig) deleteGroups(ctx context.Context) error {
	groups, err := r.admin.ListGroups(ctx)
	if err != nil {
		return fmt.Errorf("listing groups: %w", err)
	}
	mine := slices.DeleteFunc(groups.Groups(), func(g string) bool { return !strings.Contains(g, r.suffix) })
	if len(mine) == 0 {
		return nil
	}
	deleted, err := r.admin.DeleteGroups(ctx, mine...)
	if err = errors.Join(err, deleted.Error()); err != nil {
		return fmt.Errorf("deleting groups: %w", err)
	}
	return nil
}

// fill creates a topic and writes the records.
//
// They are written in blocks by partition: a partition's log then consists
// of large batches, as a busy producer's does, however many partitions there
// are.
func (r *rig) fill(ctx context.Context, label string, s shape) (data, error) {
	topic, err := r.topic(ctx, label, s.partitions)
	if err != nil {
		return data{}, err
	}
	d := data{Topic: topic, Ends: make([]int64, s.partitions)}
	headers, zipf := userHeaders(s.headers), zipfOf(s)
	return d, r.write(ctx, func(yield func(*kgo.Record) bool) {
		for i := range s.records {
			key, turn := i, i/s.block
			if s.keys > 0 {
				// The partition follows from the key, so that a key has one.
				key = i % s.keys
				if s.zipf {
					key = int(zipf.Uint64())
				}
				turn = key
			}
			if !yield(d.record(int32(turn%int(s.partitions)), key, i, headers)) {
				return
			}
		}
	})
}

// write writes records to the partitions that they name, uncompressed.
func (r *rig) write(ctx context.Context, records iter.Seq[*kgo.Record], opts ...kgo.Opt) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cl, err := kgo.NewClient(append(opts,
		kgo.SeedBrokers(r.seeds...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(200_000),
	)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	promise := func(rec *kgo.Record, err error) {
		if err != nil {
			cancel(fmt.Errorf("writing to %s/%d: %w", rec.Topic, rec.Partition, err))
		}
	}
	for rec := range records {
		cl.Produce(ctx, rec, promise)
	}
	if err := cl.Flush(ctx); err != nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
