package dlq

// The summaries of many topics at once.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// surveyed is how many dead-letter topics are read at a time. It bounds the states and the rows of
// summaries that are in memory besides the results.
const surveyed = 100

// A Survey is the result of [SummarizeAll] about one dead-letter topic.
type Survey struct {
	Ledger *Ledger
	// Summary counts the letters. It is nil if they could not be read, and lacks the rest of each
	// partition that stalled, as in [Read].
	Summary *Summary
	// Err is why the summary is missing or not complete. An error that wraps [ErrNewerVersion]
	// means the same as in [Ledger.Read]; the summary then counts the letters of such entries as
	// open. About is the topic that could not be read, the dead-letter topic or its ledger.
	Err   error
	About string
}

// SummarizeAll counts the letters of many dead-letter topics of one cluster. It returns a result
// for each ledger, in their order, with the summary that [Ledger.Summarize] returns without a
// filter and a cursor. An error about one topic leaves the other results as they are.
//
// It reads up to 100 topics at once by one client, first their ledgers and then their letters. So
// it takes few connections and requests: hundreds of small topics take about as long as a large
// one. The ledgers must have the options of one cluster, and must not be used meanwhile.
// SummarizeAll connects by the options of the first one.
//
// progress, if not nil, is called with the number of offsets that were read, and the total of the
// topics that are being read.
func SummarizeAll(ctx context.Context, ledgers []*Ledger, progress func(read, total int64)) []Survey {
	results := make([]Survey, len(ledgers))
	for i, l := range ledgers {
		results[i].Ledger = l
	}
	for some := range slices.Chunk(results, surveyed) {
		s := survey{opts: ledgers[0].opts, progress: progress}
		for i := range some {
			s.parts = append(s.parts, &surveyPart{Survey: &some[i], Ledger: some[i].Ledger})
		}
		if err := s.run(ctx); err != nil {
			for _, p := range s.parts {
				p.Err, p.About = fmt.Errorf("dlq: summarize %q: %w", p.topic, err), p.topic
			}
		}
	}
	return results
}

// survey reads some of the topics.
type survey struct {
	parts    []*surveyPart
	opts     []kgo.Opt
	progress func(read, total int64)
	topics   kadm.TopicDetails
	bounds   bounds
}

// surveyPart is a topic of a survey.
type surveyPart struct {
	*Survey
	*Ledger
	errs []error // of the present read
}

// run returns an error if it is about no topic.
func (s *survey) run(ctx context.Context) error {
	cl, err := newScanClient(s.opts, false)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	var names []string
	for _, p := range s.parts {
		names = append(names, p.topic, p.name)
	}
	if s.topics, err = adm.ListTopics(ctx, names...); err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	// Offsets of a topic that does not exist are not asked for. Without a name, kadm would list the
	// offsets of all topics.
	gone := func(name string) bool { return s.topics[name].Err != nil }
	if names = slices.DeleteFunc(s.topics.Names(), gone); len(names) > 0 {
		s.bounds = listBounds(ctx, adm, names...)
	}
	s.readLedgers(ctx, cl)
	s.readLetters(ctx, cl)
	return nil
}

func (s *survey) readLedgers(ctx context.Context, cl *kgo.Client) {
	r := newReader(s.progress)
	for _, p := range s.parts {
		p.whole, p.reached = false, nil
		letters, ledger, err := p.among(s.topics, nil)
		if err != nil {
			p.errs = append(p.errs, err)
			continue
		}
		if p.found(letters, ledger); !p.missing {
			s.add(r, p, scan{topic: p.name, keep: func(record *kgo.Record) bool { p.record(record); return true }}, p.at)
		}
	}
	r.read(ctx, cl)
	for _, p := range s.parts {
		if p.Err = p.ended(errors.Join(p.errs...)); p.Err != nil {
			p.About = p.name
		}
		p.errs = nil
	}
}

func (s *survey) readLetters(ctx context.Context, cl *kgo.Client) {
	r := newReader(s.progress)
	counts := map[*surveyPart]*summarizer{}
	for _, p := range s.parts {
		if p.whole {
			t := newSummarizer(p.Ledger, Filter{})
			counts[p] = t
			s.add(r, p, scan{topic: p.topic, narrow: t.narrow, keep: func(record *kgo.Record) bool { t.add(record); return true }}, Cursor{})
		}
	}
	r.read(ctx, cl)
	for p, t := range counts {
		var err error
		if p.Summary, err = t.ended(!r.failed[p.topic], errors.Join(p.errs...)); err != nil {
			p.Err, p.About = err, p.topic // this matters more than newer entries
		}
	}
}

// add adds a scan of one of a part's topics to a reader.
func (s *survey) add(r *reader, p *surveyPart, read scan, from Cursor) {
	read.problem = func(err error) bool {
		p.errs = append(p.errs, err)
		return true
	}
	left, err := s.bounds.spans(read.topic, len(s.topics[read.topic].Partitions), from)
	if err != nil {
		read.problem(err)
		r.failed[read.topic] = true
		return
	}
	r.add(&read, left)
}
