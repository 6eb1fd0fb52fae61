package dlq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// ImportOptions says how letters are imported.
type ImportOptions struct {
	// KeepTimestamps writes letters with the timestamps that they had. It is refused
	// where the topic's retention would delete one at once; a topic with
	// message.timestamp.type=LogAppendTime, as siding makes them, has its own
	// notwithstanding. Default: the time of the import, as for any new letter.
	KeepTimestamps bool
}

// Import writes the letters of an export into a dead-letter topic, as new letters:
// key, value and headers byte for byte, each into the partition that it was in,
// letters of a partition in their order. It returns when all replicas in sync have
// them.
//
// A letter that the topic still holds is a duplicate of that one then, see
// [Ledger.Letters], and shares its fate. Importing into the topic is for what was
// pruned or expired, or comes from another cluster. It also makes it harmless to
// import a file once more, but for letters that siding did not write.
//
// The file is read twice: first to check all of it, so that nothing is written of
// one that is cut short, has a broken line, or a letter of a partition that the topic
// has not. The error then names the line.
//
// It is no transaction, as a large file fits none. If writing goes wrong, the error
// names the first line that was not written, and n is how many letters were; of what
// was in flight when ctx ended, some may have been as well. They stay, and are open.
// Import the file once more then: it writes all of it, and letters that are there
// already become copies. A pipe can't be read
// twice; save it to a file first.
func Import(ctx context.Context, topic string, file io.ReadSeeker, how ImportOptions, opts ...kgo.Opt) (n int64, err error) {
	i := importer{topic: topic, file: file, how: how, opts: opts}
	n, err = i.run(ctx)
	if err != nil {
		return n, fmt.Errorf("dlq: import into %q: %w", topic, err)
	}
	return n, nil
}

type importer struct {
	topic string
	file  io.ReadSeeker
	how   ImportOptions
	opts  []kgo.Opt

	partitions int
	oldest     time.Time // a letter that is older would be gone at once; zero where none would

	mu      sync.Mutex
	written int64
	line    int64 // the first that was not written
	err     error // why
}

func (i *importer) run(ctx context.Context) (int64, error) {
	begin, err := i.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("the input can't be read twice, save it to a file first: %w", err)
	}
	if err := i.read(ctx); err != nil {
		return 0, err
	}
	for _, p := range exportLines(i.file) {
		if err := i.check(ctx, p); err != nil {
			return 0, fmt.Errorf("nothing was written: %w", err)
		}
	}
	if _, err := i.file.Seek(begin, io.SeekStart); err != nil {
		return 0, fmt.Errorf("nothing was written: %w", err)
	}
	return i.write(ctx)
}

// read looks at what the topic can take.
func (i *importer) read(ctx context.Context) error {
	adm, err := client.NewAdmin(i.opts...)
	if err != nil {
		return err
	}
	defer adm.Close()
	ends, err := offsets(ctx, adm.ListEndOffsets, i.topic)
	if err != nil {
		return fmt.Errorf("list end offsets: %w", err)
	}
	i.partitions = len(ends)
	if !i.how.KeepTimestamps {
		return nil
	}
	configs, err := adm.DescribeTopicConfigs(ctx, i.topic)
	if err != nil {
		return fmt.Errorf("describe configs: %w", err)
	}
	config, err := configs.On(i.topic, nil)
	if err := errors.Join(err, config.Err); err != nil {
		return fmt.Errorf("describe configs: %w", err)
	}
	set := map[string]string{}
	for _, c := range config.Configs {
		set[c.Key] = c.MaybeValue()
	}
	retention, err := strconv.ParseInt(set["retention.ms"], 10, 64)
	if err == nil && retention >= 0 && strings.Contains(set["cleanup.policy"], "delete") && set["message.timestamp.type"] != "LogAppendTime" {
		i.oldest = time.Now().Add(-time.Duration(min(retention, int64(maxRetention/time.Millisecond))) * time.Millisecond)
	}
	return nil
}

// maxRetention is longer than any that is meant, and no overflow.
const maxRetention = 100 * 365 * 24 * time.Hour

// check makes sure that a line can be written.
func (i *importer) check(ctx context.Context, p parsed) error {
	switch {
	case p.err != nil:
		return p.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case int(p.record.Partition) >= i.partitions:
		return fmt.Errorf("letter %s/%d/%d is of a partition that the topic has not, which has %d: give it more",
			p.record.Topic, p.record.Partition, p.record.Offset, i.partitions)
	case p.record.Timestamp.Before(i.oldest):
		return fmt.Errorf("letter %s/%d/%d has the timestamp %s, and the topic's retention would delete it at once: raise that, or don't keep timestamps",
			p.record.Topic, p.record.Partition, p.record.Offset, p.record.Timestamp.UTC().Format(time.RFC3339))
	}
	return nil
}

func (i *importer) write(ctx context.Context) (int64, error) {
	cl, err := client.New(writeOpts(i.opts)...)
	if err != nil {
		return 0, err
	}
	var under sync.WaitGroup
	for line, p := range exportLines(i.file) {
		if err := i.check(ctx, p); err != nil { // again: the file may have changed
			i.failed(line, err)
		}
		if i.stopped() {
			break
		}
		r := &kgo.Record{Topic: i.topic, Partition: p.record.Partition, Key: p.record.Key, Value: p.record.Value, Headers: p.record.Headers}
		if i.how.KeepTimestamps {
			r.Timestamp = p.record.Timestamp
		}
		under.Add(1)
		cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			defer under.Done()
			if err != nil {
				i.failed(line, fmt.Errorf("line %d: write it to %s-%d: %w", line, r.Topic, r.Partition, ended(ctx, err)))
				return
			}
			i.mu.Lock()
			defer i.mu.Unlock()
			i.written++
		})
	}
	_ = cl.Flush(ctx) // an error is that of ctx; what did not come through fails one by one
	cl.Close()
	under.Wait()
	if i.err != nil {
		return i.written, fmt.Errorf("%d letters were written, then: %w", i.written, i.err)
	}
	return i.written, nil
}

// failed keeps the error about the first line that was not written.
func (i *importer) failed(line int64, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil || line < i.line {
		i.line, i.err = line, err
	}
}

func (i *importer) stopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err != nil
}
