package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/notify"
)

// alerter follows the incidents of the topics that a server owns, and tells the receivers. One
// goroutine at a time uses it.
type alerter struct {
	cfg       *Config
	log       *slog.Logger
	receivers []receiver
	writer    *kgo.Client // to ledgers
	followed  map[incidentKey]*incident.Follower
	waiting   map[incidentKey]int // receivers that have not answered yet
	answers   chan answer
}

type incidentKey struct{ topic, kind string }

// receiver is a configured receiver of notifications.
type receiver struct {
	config Receiver
	*notify.Receiver
}

func (r *receiver) wants(topic string, s incident.Severity) bool {
	fits := r.config.Topics == ""
	if !fits {
		fits, _ = path.Match(r.config.Topics, topic)
	}
	return fits && (s == incident.Page || r.config.Severity != incident.Page)
}

// newReceivers makes the configured receivers, and returns all that is wrong with their URLs.
func newReceivers(configured []Receiver, log *slog.Logger) (all []receiver, err error) {
	for i, c := range configured {
		address := os.Getenv(c.URLEnv)
		from := "variable " + c.URLEnv
		if c.URLFile != "" {
			text, readErr := os.ReadFile(c.URLFile)
			if readErr != nil {
				err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].url-file", i), Problem: readErr.Error()})
				continue
			}
			address, from = strings.TrimSpace(string(text)), "file "+c.URLFile
		}
		r, urlErr := notify.New(c.Name, address, log)
		if urlErr != nil {
			err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d]", i), Problem: fmt.Sprintf("the URL of the %s: %v", from, urlErr)})
			continue
		}
		all = append(all, receiver{c, r})
	}
	return all, err
}

// answer is the end of what was sent to one receiver: it was accepted, or given up.
type answer struct {
	incidentKey
	state incident.State // that was told
}

// newAlerter makes an alerter, and its receivers run until ctx ends.
func newAlerter(ctx context.Context, cfg *Config, log *slog.Logger, receivers []receiver) (*alerter, error) {
	writer, err := kgo.NewClient(append(cfg.Kafka[:len(cfg.Kafka):len(cfg.Kafka)], kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	for _, r := range receivers {
		go r.Run(ctx)
	}
	return &alerter{cfg: cfg, log: log, receivers: receivers, writer: writer, followed: map[incidentKey]*incident.Follower{}, waiting: map[incidentKey]int{}, answers: make(chan answer)}, nil
}

// see judges the alerts of a topic that the server owns.
func (a *alerter) see(ctx context.Context, t *topic, now time.Time) {
	if t.book.Progress().Complete.IsZero() {
		return // what nobody knows is no reason to alert
	}
	f, is := t.figures(now), t.config.thresholds()
	for _, kind := range alertKinds {
		key := incidentKey{t.DeadLetterTopic.Topic, kind.name}
		follower := a.followed[key]
		if follower == nil {
			state, err := incident.Parse(t.book.Noted(noteOf(kind.name)))
			if err != nil {
				a.log.Warn("siding: the note of an incident cannot be read; the incident begins anew", "topic", key.topic, "alert", kind.name, "error", err)
			}
			follower = &incident.Follower{State: state}
			a.followed[key] = follower
			if !state.Since.IsZero() && !state.Told {
				a.tell(ctx, t, key, follower) // the server before did not come to it
			}
		}
		if follower.See(now, kind.due(&f, is, now)) {
			a.note(ctx, t, key, follower)
			a.tell(ctx, t, key, follower)
		}
	}
}

// forget drops what is known of a topic that another server owns now.
func (a *alerter) forget(owns func(topic string) bool) {
	for key := range a.followed {
		if !owns(key.topic) {
			delete(a.followed, key)
		}
	}
}

func noteOf(kind string) string { return "alert/" + kind }

// note writes the state of an incident to the topic's ledger.
func (a *alerter) note(ctx context.Context, t *topic, key incidentKey, f *incident.Follower) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := a.writer.ProduceSync(ctx, t.book.Note(noteOf(key.kind), f.Note())).FirstErr(); err != nil && ctx.Err() == nil {
		a.log.Warn("siding: an incident could not be noted in the ledger; another server may tell of it again", "topic", key.topic, "alert", key.kind, "ledger", t.Ledger, "error", err)
	}
}

// tell sends the news of an incident to the receivers that want it. When all have answered, it is
// noted that people were told.
func (a *alerter) tell(ctx context.Context, t *topic, key incidentKey, f *incident.Follower) {
	var to []receiver
	for _, r := range a.receivers {
		if r.wants(key.topic, f.Severity) {
			to = append(to, r)
		}
	}
	a.log.Log(ctx, slog.LevelWarn, "siding: an incident of a dead-letter topic", "topic", key.topic, "alert", key.kind, "severity", f.Severity, "text", f.Text, "over", !f.On(), "receivers", len(to))
	if a.waiting[key] = len(to); len(to) == 0 {
		f.Told = true
		a.note(ctx, t, key, f)
	}
	state, message := f.State, a.message(key, &f.State)
	for _, r := range to {
		message.Done = func(err error) {
			if err != nil {
				a.log.Error("siding: a notification was given up", "receiver", r.config.Name, "topic", key.topic, "alert", key.kind, "error", err)
			}
			select {
			case a.answers <- answer{key, state}:
			case <-ctx.Done():
			}
		}
		r.Send(message)
	}
}

// answered notes that people were told, once all receivers have answered. t is the topic of the
// answer.
func (a *alerter) answered(ctx context.Context, t *topic, got answer) {
	f := a.followed[got.incidentKey]
	if f == nil || f.State != got.state {
		return // there is newer news, or another server owns the topic
	}
	if a.waiting[got.incidentKey]--; a.waiting[got.incidentKey] == 0 {
		f.Told = true
		a.note(ctx, t, got.incidentKey, f)
	}
}

// message puts the news of an incident in words.
func (a *alerter) message(key incidentKey, s *incident.State) notify.Message {
	title := fmt.Sprintf("[%s] %s: %s", s.Severity, key.topic, s.Text)
	if !s.On() {
		title = fmt.Sprintf("[over] %s: %s", key.topic, s.Text)
	}
	text := fmt.Sprintf("%s\nsince %s", title, s.Since.UTC().Format(time.RFC3339))
	if !s.On() {
		text += fmt.Sprintf(", over %s", s.Over.UTC().Format(time.RFC3339))
	}
	return notify.Message{Title: title, Text: fmt.Sprintf("%s\n%s/topics/%s", text, a.cfg.URL, url.PathEscape(key.topic))}
}
