package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/serve/api"
)

const (
	partitions = 2
	// classes is how many each topic has.
	classes = 20
	// readTime is how long the server may take to read all letters.
	readTime = 15 * time.Minute
)

// scene is a broker with letters in some topics, and a server that has read them.
type scene struct {
	broker  *kfake.Cluster
	child   *child
	topics  []string // sources
	letters int
	value   int           // bytes of each letter's value
	read    time.Duration // that the server took
}

func newScene(ctx context.Context, topics, letters, value int) (_ *scene, err error) {
	s := &scene{letters: letters, value: value}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	var seeds []string
	for i := range topics {
		name := fmt.Sprintf("orders-%02d", i)
		s.topics = append(s.topics, name)
		seeds = append(seeds, name, name+".dlq", name+".dlq.ledger")
	}
	if s.broker, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, seeds...)); err != nil {
		return nil, err
	}
	if err := s.write(ctx); err != nil {
		return nil, err
	}
	if s.child, err = startChild(s.broker.ListenAddrs()[0]); err != nil {
		return nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, readTime, errors.New("the server has not read all letters in time"))
	defer cancel()
	for tick := time.Tick(500 * time.Millisecond); ; {
		if is, err := s.open(ctx); err == nil && is == letters {
			s.read = time.Since(began)
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick:
		}
	}
}

func (s *scene) end() {
	if s.child != nil {
		s.child.end()
		s.child = nil
	}
	if s.broker != nil {
		s.broker.Close()
		s.broker = nil
	}
}

// write writes letters over the last three days.
func (s *scene) write(ctx context.Context) error {
	cl, err := client.New(kgo.SeedBrokers(s.broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		return err
	}
	defer cl.Close()
	writers := map[string]*dlq.Writer{}
	for _, source := range s.topics {
		writers[source] = dlq.NewWriter(cl, source+".dlq")
	}
	var mu sync.Mutex
	var failed error
	begin := time.Now().Add(-72 * time.Hour)
	value, flushEvery := make([]byte, s.value), min(20_000, 16<<20/s.value)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value) // nothing compresses it
	for i := range s.letters {
		at := begin.Add(time.Duration(i) * 72 * time.Hour / time.Duration(s.letters))
		source, class := s.topics[i%len(s.topics)], className(i/len(s.topics))
		r := &kgo.Record{Topic: source, Partition: int32(i / len(s.topics) % partitions), Offset: int64(i), Value: value}
		writers[source].Write(ctx, r, headers.Meta{
			Original: headers.Position{Topic: source, Partition: r.Partition, Offset: r.Offset}, Group: "billing", Version: fmt.Sprint("2.3.", i%3), Attempts: 1, Class: class,
			Fingerprint: "f-" + class, Message: "no rate for region", Reason: headers.ReasonTerminal, FirstFailedAt: at, FailedAt: at,
		}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
		if i%flushEvery == 0 { // the client buffers only so many
			if err := cl.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(cl.Flush(ctx), failed)
}

func className(i int) string { return fmt.Sprintf("class-%d", i%classes) }

// get returns what a path answers.
func (s *scene) get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.child.address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return text, err
}

// open returns how many letters are open, as the server knows.
func (s *scene) open(ctx context.Context) (int, error) {
	text, err := s.get(ctx, "/api/v1/topics")
	if err != nil {
		return 0, err
	}
	var topics []api.Topic
	if err := json.Unmarshal(text, &topics); err != nil {
		return 0, err
	}
	n := 0
	for _, t := range topics {
		n += int(t.Open)
	}
	return n, nil
}

// page returns the path of the first page of a topic, 50 rows. Each has a filter of its own, so
// none is answered with a page that was rendered before. Every second one is of one class.
func (s *scene) page(i int) string {
	query := "until=" + time.Unix(4e9+int64(i), 0).UTC().Format(time.RFC3339)
	if i%2 == 1 {
		query += "&class=" + className(i)
	}
	return "/topics/" + s.topics[i%len(s.topics)] + ".dlq?" + query
}

// rows returns how many letters that page has.
func (s *scene) rows(i int) int {
	n := s.letters / len(s.topics)
	if i%2 == 1 {
		n /= classes
	}
	return min(50, n)
}

// pages asks for first pages, and returns how long each took.
func (s *scene) pages(ctx context.Context, n int) (took []time.Duration, err error) {
	// the server answers 50 requests a second of one sender
	tick := time.Tick(25 * time.Millisecond)
	for i := range n {
		<-tick
		began := time.Now()
		text, err := s.get(ctx, s.page(i))
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if n, want := strings.Count(string(text), `id="letter-`), s.rows(i); n != want {
			return nil, fmt.Errorf("a page has %d letters, want %d", n, want)
		}
	}
	return took, nil
}

// firstPage is how long the server takes for the first page of a topic.
func (s *scene) firstPage(ctx context.Context, pages int) (figure, error) {
	before, err := s.child.cpu()
	if err != nil {
		return figure{}, err
	}
	took, err := s.pages(ctx, pages)
	if err != nil {
		return figure{}, err
	}
	after, err := s.child.cpu()
	if err != nil {
		return figure{}, err
	}
	return figure{"first page", ms(percentile(took, 95)), 150, "ms p95", fmt.Sprintf("median %.1f ms, %.1f ms of CPU, of %d letters in a topic, read in %.0f s", ms(percentile(took, 50)), ms(after-before)/float64(pages), s.letters, s.read.Seconds())}, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile returns the duration that so many percent of them do not exceed.
func percentile(all []time.Duration, percent int) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)*percent+99)/100-1]
}

// atWork returns what viewers cost while nothing happens, what the server has in memory at most,
// from its start to the end, and by how much that grows when pages and viewers come again.
func (s *scene) atWork(ctx context.Context, pages, viewers int, rest time.Duration) (all []figure, err error) {
	read, _, err := s.child.resident()
	if err != nil {
		return nil, err
	}
	var after [2]float64 // in memory after each round
	var most float64
	for round := range after {
		if _, err := s.pages(ctx, pages); err != nil {
			return nil, err
		}
		f, err := s.viewers(ctx, viewers, rest)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
		if after[round], most, err = s.child.resident(); err != nil {
			return nil, err
		}
	}
	return append(
		all,
		figure{"memory", most, 128, "MiB peak", fmt.Sprintf("%.0f MiB after it had read %d letters in %d topics, in %.0f s", read, s.letters, len(s.topics), s.read.Seconds())},
		figure{"memory growth", after[1] - after[0], 8, "MiB", fmt.Sprintf("from %.0f MiB after %d pages and %d viewers to %.0f MiB after as many more", after[0], pages, viewers, after[1])},
	), nil
}

// largeValues is what the server has in memory at most while it reads letters with large values.
func (s *scene) largeValues() (figure, error) {
	_, most, err := s.child.resident()
	return figure{"large values", most, 128, "MiB peak", fmt.Sprintf("%d letters of %d KB in %d topics, read in %.0f s", s.letters, s.value/1000, len(s.topics), s.read.Seconds())}, err
}

// viewers follow the overview and all topics with live pages, while nothing happens.
func (s *scene) viewers(ctx context.Context, n int, rest time.Duration) (figure, error) {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	for i := range n {
		path := "/"
		if i%2 == 1 {
			path = "/topics/" + s.topics[i/2%len(s.topics)] + ".dlq"
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.child.address+path, nil)
		if err != nil {
			return figure{}, err
		}
		r.Header.Set("Accept", "text/event-stream")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return figure{}, err
		}
		if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
			answer.Body.Close()
			return figure{}, fmt.Errorf("%s: %s, %s", path, answer.Status, kind)
		}
		following.Go(func() {
			defer answer.Body.Close()
			_, _ = io.Copy(io.Discard, answer.Body)
		})
	}
	settled := time.NewTimer(rest / 3) // the first renderings are not rest
	defer settled.Stop()
	select {
	case <-ctx.Done():
		return figure{}, ctx.Err()
	case <-settled.C:
	}
	before, err := s.child.cpu()
	if err != nil {
		return figure{}, err
	}
	began := time.Now()
	over := time.NewTimer(rest)
	defer over.Stop()
	select {
	case <-ctx.Done():
		return figure{}, ctx.Err()
	case <-over.C:
	}
	after, err := s.child.cpu()
	if err != nil {
		return figure{}, err
	}
	share := 100 * (after - before).Seconds() / time.Since(began).Seconds()
	return figure{"viewers", share, 10, "% of core", fmt.Sprintf("%d live pages of %d topics, for %v", n, len(s.topics), rest)}, nil
}
