package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/notify"
)

// alerter follows the incidents of the topics that a server owns, and tells the receivers. One
// goroutine at a time uses it.
type alerter struct {
	cfg       *Config
	log       *slog.Logger
	receivers []receiver
	sending   sync.WaitGroup // the receivers
	writer    *noteWriter    // to ledgers
	followed  map[incidentKey]*followed
	news      int // how many changes were told
	answers   chan answer
	owns      func(topic string) bool
	me        string // stands for this server in notes
}

// followed is an incident that the server follows.
type followed struct {
	incident.Follower
	news    int         // the number of the change that is being told
	waiting int         // receivers that have not answered yet
	noted   string      // the note that was read last
	unnoted atomic.Bool // a note of what was known could not be written
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
		if (c.URLEnv == "") == (c.URLFile == "") {
			continue // the check of the configuration says so
		}
		key, from := "url-env", "variable "+c.URLEnv
		address := os.Getenv(c.URLEnv)
		if c.URLEnv != "" && address == "" {
			err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].url-env", i), Problem: fmt.Sprintf("the variable %s is not set: it has the receiver's URL", c.URLEnv)})
			continue
		}
		if c.URLFile != "" {
			key = "url-file"
			text, readErr := os.ReadFile(c.URLFile)
			if readErr != nil {
				err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].url-file", i), Problem: readErr.Error()})
				continue
			}
			address, from = strings.TrimSpace(string(text)), "file "+c.URLFile
		}
		r, urlErr := notify.New(c.Name, address, log)
		if urlErr != nil {
			err = errors.Join(err, &KeyError{Key: fmt.Sprintf("notify[%d].%s", i, key), Problem: fmt.Sprintf("the URL of the %s: %v", from, urlErr)})
			continue
		}
		all = append(all, receiver{c, r})
	}
	return all, err
}

// answer is the end of what was sent to one receiver: it was accepted, or given up.
type answer struct {
	incidentKey
	receiver string
	news     int // the change that was told
}

// newAlerter makes an alerter, and its receivers run until ctx ends. owns reports whether the
// server owns a topic.
func newAlerter(ctx context.Context, cfg *Config, log *slog.Logger, receivers []receiver, owns func(topic string) bool) (*alerter, error) {
	writer, err := client.New(append(cfg.Kafka[:len(cfg.Kafka):len(cfg.Kafka)], kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	a := &alerter{cfg: cfg, log: log, receivers: receivers, writer: &noteWriter{client: writer}, followed: map[incidentKey]*followed{}, answers: make(chan answer), owns: owns, me: rand.Text()}
	for _, r := range receivers {
		a.sending.Go(func() { r.Run(ctx) })
	}
	return a, nil
}

// close ends the alerter, after the end of its context. What a receiver accepted meanwhile is
// noted: the next server must not tell it again. topics returns a topic by its name, or nil.
func (a *alerter) close(ctx context.Context, topics func(name string) *topic) {
	ended := make(chan struct{})
	go func() {
		a.sending.Wait()
		close(ended)
	}()
	for open := true; open; {
		select {
		case got := <-a.answers:
			if t := topics(got.topic); t != nil {
				a.answered(ctx, t, got)
			}
		case <-ended:
			open = false
		}
	}
	a.writer.close(ctx)
}

// see judges the alerts of a topic about which the server decides.
func (a *alerter) see(ctx context.Context, t *topic, now time.Time, rules []Rule) {
	if t.book.Progress().Complete.IsZero() {
		return // what nobody knows is no reason to alert
	}
	f, is := t.figures(now, rules), t.config.thresholds()
	for _, kind := range alertKinds {
		key := incidentKey{t.DeadLetterTopic.Topic, kind.name}
		follows := a.follow(ctx, t, key)
		if follows.unnoted.Load() && t.mayNote(now) {
			a.noteIncident(ctx, t, key, follows)
		}
		if follows.See(now, kind.due(&f, is, now)) {
			a.noteIncident(ctx, t, key, follows)
			a.tell(ctx, t, key, follows)
		}
	}
	if note := t.remember(); note != nil && t.mayNote(now) {
		t.remembers(note)
		a.note(ctx, t, classesNote, note, func() { t.remembers(nil) })
	}
}

// follow returns what the server knows of an incident. While the server was suspended, another one
// may have owned the topic, and told people: then its note counts. A note that is gone is written
// anew.
func (a *alerter) follow(ctx context.Context, t *topic, key incidentKey) *followed {
	note := t.book.Noted(noteOf(key.kind))
	follows := a.followed[key]
	if follows != nil && string(note) == follows.noted {
		return follows
	}
	if follows != nil && note == nil { // the ledger was recreated
		follows.noted = ""
		follows.unnoted.Store(true)
		return follows
	}
	state, err := incident.Parse(note)
	if follows != nil && err == nil && state.By == a.me {
		follows.noted = string(note)
		return follows
	}
	if err != nil {
		a.log.Warn("siding: the note of an incident cannot be read; the incident begins anew", "topic", key.topic, "alert", key.kind, "error", err)
	}
	follows = &followed{Follower: incident.Follower{State: state}, noted: string(note)}
	a.followed[key] = follows
	if !state.Since.IsZero() && !state.Told {
		a.tell(ctx, t, key, follows) // the server before did not come to it
	}
	return follows
}

// noteIncident writes what the server knows of an incident to the topic's ledger, and waits for
// nothing. A note that could not be written is tried again.
func (a *alerter) noteIncident(ctx context.Context, t *topic, key incidentKey, f *followed) {
	f.By = a.me
	f.unnoted.Store(false)
	a.note(ctx, t, noteOf(key.kind), f.Note(), func() { f.unnoted.Store(true) })
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

// retryNotes is how long after a note that could not be written the next one is tried.
const retryNotes = 30 * time.Second

// note writes a note to the topic's ledger in the background, and calls failed if that was in vain.
// A ledger that could not be written has a rest.
func (a *alerter) note(ctx context.Context, t *topic, name string, value []byte, failed func()) {
	if t.hasLedger() != nil || !t.mayNote(time.Now()) { // the log has it
		failed()
		return
	}
	a.writer.write(ctx, t.book.Note(name, value), func(err error) {
		switch {
		case err == nil:
			return
		case !errors.Is(err, kerr.UnknownTopicID): // else it is written in the next round
			t.restNotes(time.Now().Add(retryNotes))
		}
		failed()
		a.log.Warn("siding: the ledger could not be written, and is tried again; until then another server may tell of an incident again", "topic", t.DeadLetterTopic.Topic, "note", name, "ledger", t.Ledger, "error", err)
	})
}

// tell sends the news of an incident to the receivers that want it and were not told yet. When all
// have answered, it is noted that people were told.
func (a *alerter) tell(ctx context.Context, t *topic, key incidentKey, f *followed) {
	var to []receiver
	for _, r := range a.receivers {
		if r.wants(key.topic, f.Severity) && !slices.Contains(f.ToldTo, r.config.Name) {
			to = append(to, r)
		}
	}
	a.log.Log(ctx, slog.LevelWarn, "siding: an incident of a dead-letter topic", "topic", key.topic, "alert", key.kind, "severity", f.Severity, "text", f.Text, "over", !f.On(), "receivers", len(to))
	a.news++
	f.news, f.waiting = a.news, len(to)
	givenUp := func(r *receiver, err error) {
		a.log.Error("siding: a notification was given up", "receiver", r.config.Name, "topic", key.topic, "alert", key.kind, "error", err)
	}
	message, news := a.message(key, &f.State), f.news
	message.Drop = func() bool { return !a.owns(key.topic) }
	for _, r := range to {
		message.Done = func(err error) {
			switch {
			case errors.Is(err, notify.ErrDropped):
				return // the server that owns the topic now tells
			case err != nil:
				givenUp(&r, err)
			}
			a.answers <- answer{key, r.config.Name, news} // close reads the last ones
		}
		if err := r.Send(message); err != nil {
			givenUp(&r, err)
			f.waiting--
		}
	}
	if f.waiting == 0 {
		a.told(ctx, t, key, f)
	}
}

// answered notes that a receiver was told. t is the topic of the answer.
func (a *alerter) answered(ctx context.Context, t *topic, got answer) {
	f := a.followed[got.incidentKey]
	if f == nil || f.news != got.news {
		return // there is newer news, or another server owns the topic
	}
	f.ToldTo = append(f.ToldTo, got.receiver)
	if f.waiting--; f.waiting == 0 {
		a.told(ctx, t, got.incidentKey, f)
		return
	}
	a.noteIncident(ctx, t, got.incidentKey, f)
}

// told notes that all receivers were told.
func (a *alerter) told(ctx context.Context, t *topic, key incidentKey, f *followed) {
	f.Told, f.ToldTo = true, nil
	a.noteIncident(ctx, t, key, f)
}

// message puts the news of an incident in words.
func (a *alerter) message(key incidentKey, s *incident.State) notify.Message {
	title := fmt.Sprintf("[%s] %s: %s", s.Severity, key.topic, s.Text)
	text := "since " + s.Since.UTC().Format(time.RFC3339)
	if !s.On() {
		title = fmt.Sprintf("[over] %s: %s", key.topic, s.Text)
		text += ", over " + s.Over.UTC().Format(time.RFC3339)
	}
	link := strings.TrimSuffix(a.cfg.URL, "/") + "/topics/" + url.PathEscape(key.topic)
	id := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", link, key.kind, s.Since.UTC().Format(time.RFC3339Nano)))
	return notify.Message{Title: title, Text: text, Link: link, Key: "siding-" + hex.EncodeToString(id[:16]), Over: !s.On(), Urgent: s.Severity == incident.Page}
}
