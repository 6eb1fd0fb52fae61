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
	news      int         // how many changes were told
	answers   chan answer // has room, so that receivers go on during a long round
	owns      func(topic string) bool
	me        string // stands for this server in notes
}

// followed is an incident that the server follows.
type followed struct {
	incident.Follower
	of      *topic
	news    int         // the number of the change that is being told
	waiting int         // receivers that have not answered yet
	refused bool        // a receiver had no room for the change
	noted   string      // the note that was read last
	unnoted atomic.Bool // a note of what was known could not be written
	left    time.Time   // when this server ceased to own the topic; zero while it owns it
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

// mostWaiting bounds the messages that wait for a receiver.
const mostWaiting = 1000

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
		r, urlErr := notify.New(c.Name, address, mostWaiting, log)
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
	a := &alerter{cfg: cfg, log: log, receivers: receivers, writer: newNoteWriter(writer), followed: map[incidentKey]*followed{}, answers: make(chan answer, mostWaiting*len(receivers)), owns: owns, me: rand.Text()}
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
			a.answered(ctx, topics(got.topic), got)
		case <-ended:
			open = false
		}
	}
	a.answeredAll(ctx, topics)
	a.writer.close(ctx)
}

// see judges the alerts of a topic about which the server decides. What cannot be read might be a
// reason to alert, so no incident is over meanwhile.
func (a *alerter) see(ctx context.Context, t *topic, now time.Time, rules []Rule) {
	progress := t.book.Progress()
	if progress.Read.IsZero() {
		return // what nobody knows is no reason to alert
	}
	f, is := t.figures(now, rules), t.config.thresholds()
	for _, kind := range alertKinds {
		key := incidentKey{t.DeadLetterTopic.Topic, kind.name}
		follows := a.follow(ctx, t, key)
		if follows.unnoted.Load() && t.mayNote(now) {
			a.noteIncident(ctx, t, key, follows)
		}
		due := kind.due(&f, is, now)
		if due == nil && !isWhole(progress.Problem) {
			continue
		}
		if follows.See(now, due) {
			a.noteIncident(ctx, t, key, follows)
			a.tell(ctx, t, key, follows)
		} else if follows.refused && follows.waiting == 0 {
			a.offer(ctx, t, key, follows)
		}
	}
	if note := t.remember(); note != nil && t.mayNote(now) {
		t.remembers(note)
		a.note(ctx, t, classesNote, note, func() { t.remembers(nil) })
	}
}

// follow returns what the server knows of an incident.
func (a *alerter) follow(ctx context.Context, t *topic, key incidentKey) *followed {
	note := t.book.Noted(noteOf(key.kind))
	follows := a.followed[key]
	if follows != nil && a.stands(follows, note) {
		follows.of = t
		if !follows.left.IsZero() { // the topic is this server's again
			follows.left = time.Time{}
			if !follows.Since.IsZero() && !follows.Told {
				a.tell(ctx, t, key, follows) // what waited for receivers was dropped
			}
		}
		return follows
	}
	state, err := incident.Parse(note)
	if err != nil {
		a.log.Warn("siding: the note of an incident cannot be read; the incident begins anew", "topic", key.topic, "alert", key.kind, "error", err)
	}
	follows = &followed{Follower: incident.Follower{State: state}, of: t, noted: string(note)}
	a.followed[key] = follows
	if !state.Since.IsZero() && !state.Told {
		a.tell(ctx, t, key, follows) // the server before did not come to it
	}
	return follows
}

// stands reports whether what this server knows of an incident counts, and not the note. While the
// server was suspended, another one may have owned the topic, and told people: then its note
// counts. A note that is gone is written anew.
func (a *alerter) stands(f *followed, note []byte) bool {
	if string(note) == f.noted {
		return true
	}
	if note == nil { // the ledger was recreated
		f.noted = ""
		f.unnoted.Store(true)
		return true
	}
	if state, err := incident.Parse(note); err != nil || state.By != a.me {
		return false
	}
	f.noted = string(note)
	return true
}

// noteIncident writes what the server knows of an incident to the topic's ledger, and waits for
// nothing. A note that could not be written is tried again.
func (a *alerter) noteIncident(ctx context.Context, t *topic, key incidentKey, f *followed) {
	f.By = a.me
	f.unnoted.Store(false)
	a.note(ctx, t, noteOf(key.kind), f.Note(), func() { f.unnoted.Store(true) })
}

func noteOf(kind string) string { return "alert/" + kind }

// retryNotes is how long after a note that could not be written the next one is tried.
const retryNotes = 30 * time.Second

// note writes a note to the topic's ledger in the background, and calls failed if that was in vain.
// After that the ledger rests, unless it is another one now.
func (a *alerter) note(ctx context.Context, t *topic, name string, value []byte, failed func()) {
	if t.hasLedger() != nil { // the log has it
		failed()
		return
	}
	a.writer.write(ctx, t.book.Note(name, value), func(err error) {
		if err == nil {
			return
		}
		if !errors.Is(err, errRecreated) {
			t.restNotes(time.Now().Add(retryNotes))
		}
		failed()
		a.log.Warn("siding: the ledger could not be written, and is tried again; until then another server may tell of an incident again", "topic", t.DeadLetterTopic.Topic, "note", name, "ledger", t.Ledger, "error", err)
	})
}

// tell sends the news of an incident to the receivers that want it and were not told yet, unless
// another server owns the topic by then. When all have answered, it is noted that people were told.
func (a *alerter) tell(ctx context.Context, t *topic, key incidentKey, f *followed) {
	a.logIncident(ctx, key, f)
	if a.offer(ctx, t, key, f); f.refused {
		a.log.Warn("siding: a notification waits for room: too many wait for a receiver already", "topic", key.topic, "alert", key.kind, "most", mostWaiting)
	}
}

func (a *alerter) logIncident(ctx context.Context, key incidentKey, f *followed) {
	a.log.Log(ctx, slog.LevelWarn, "siding: an incident of a dead-letter topic", "topic", key.topic, "alert", key.kind, "severity", f.Severity, "text", f.Text, "over", !f.On(), "receivers", len(a.untold(key, f)))
}

// offer tells what tell did, or could not since there was no room.
func (a *alerter) offer(ctx context.Context, t *topic, key incidentKey, f *followed) {
	a.send(key, f, func() bool { return !a.owns(key.topic) })
	if f.waiting == 0 && !f.refused {
		a.told(ctx, t, key, f)
	}
}

// untold returns the receivers that want the news of an incident, and were not told yet.
func (a *alerter) untold(key incidentKey, f *followed) (to []receiver) {
	for _, r := range a.receivers {
		if r.wants(key.topic, f.Severity) && !slices.Contains(f.ToldTo, r.config.Name) {
			to = append(to, r)
		}
	}
	return to
}

// send sends the news of an incident to the receivers that want it and were not told yet, unless
// drop says otherwise by then.
func (a *alerter) send(key incidentKey, f *followed, drop func() bool) {
	a.news++
	f.news, f.waiting, f.refused = a.news, 0, false
	message, news := a.message(key, &f.State), f.news
	message.Drop = drop
	for _, r := range a.untold(key, f) {
		message.Done = func(err error) {
			switch {
			case errors.Is(err, notify.ErrDropped):
				return // the server that owns the topic now tells
			case err != nil:
				a.log.Error("siding: a notification was given up", "receiver", r.config.Name, "topic", key.topic, "alert", key.kind, "error", err)
			}
			a.answers <- answer{key, r.config.Name, news} // close reads the last ones
		}
		if r.Send(message) {
			f.waiting++
		} else {
			f.refused = true
		}
	}
}

// answeredAll notes the answers that have come, and waits for no further ones. topics returns a
// topic by its name, or nil.
func (a *alerter) answeredAll(ctx context.Context, topics func(name string) *topic) {
	for {
		select {
		case got := <-a.answers:
			a.answered(ctx, topics(got.topic), got)
		default:
			return
		}
	}
}

// answered notes that a receiver was told. t is the topic of the answer; nil if it is gone.
func (a *alerter) answered(ctx context.Context, t *topic, got answer) {
	f := a.followed[got.incidentKey]
	if t == nil || f == nil || f.news != got.news || !f.left.IsZero() {
		return // there is newer news, or another server owns the topic
	}
	f.ToldTo = append(f.ToldTo, got.receiver)
	if f.waiting--; f.waiting == 0 && !f.refused {
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
