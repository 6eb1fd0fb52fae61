package alert

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/incident"
	"github.com/sidingkafka/siding/serve/internal/notes"
	"github.com/sidingkafka/siding/serve/internal/notify"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Alerter follows the incidents of the topics that a server owns, and notifies the receivers. One
// goroutine at a time uses it.
type Alerter struct {
	cfg      Config
	sending  sync.WaitGroup // the receivers
	followed map[incidentKey]*followed
	news     int         // how many changes receivers were notified of
	answers  chan answer // has room, so that receivers go on during a long round
	me       string      // stands for this server in notes
}

// followed is an incident that the server follows.
type followed struct {
	incident.Follower
	of         *watch.Topic
	news       int             // the number of the last change
	asked      map[string]bool // receivers to which this server sent it, if they did not drop it
	refused    bool            // a receiver had no room for the change
	recorded   string          // the note that was read last
	unrecorded atomic.Bool     // a note of what was known could not be written
	left       time.Time       // when this server ceased to own the topic; zero while it owns it
	ended      bool            // this server notified that it is over, since the topic was gone
}

type incidentKey struct{ topic, kind string }

// Receiver is a receiver of notifications.
type Receiver struct {
	*notify.Receiver
	Name string
	// Topics is a pattern of dead-letter topics' names; empty for all.
	Topics string
	// Severity is the lowest that the receiver gets; empty for all.
	Severity incident.Severity
}

func (r *Receiver) wants(topic string, s incident.Severity) bool {
	fits := r.Topics == ""
	if !fits {
		fits, _ = path.Match(r.Topics, topic)
	}
	return fits && (s == incident.Page || r.Severity != incident.Page)
}

// answer is the end of what was sent to one receiver: it was accepted, given up, or dropped.
type answer struct {
	incidentKey
	receiver string
	news     int // the change that the message was about
	err      error
}

// MostWaiting bounds the messages that wait for a receiver.
const MostWaiting = 1000

// Config is what an [Alerter] depends on.
type Config struct {
	Writer    *notes.Writer
	URL       string // of the server
	Group     string // of the servers that share the topics
	Receivers []Receiver
	Owns      func(topic string) bool        // reports whether the server owns a topic
	Topic     func(name string) *watch.Topic // nil if there is none
	Meter     *notify.Meter
	Log       *slog.Logger
}

// New makes an alerter. Its receivers run until ctx ends.
func New(ctx context.Context, cfg Config) *Alerter {
	a := &Alerter{cfg: cfg, followed: map[incidentKey]*followed{}, answers: make(chan answer, MostWaiting*len(cfg.Receivers)), me: rand.Text()}
	for _, r := range cfg.Receivers {
		a.sending.Go(func() { r.Run(ctx) })
	}
	return a
}

// AwaitAnswers keeps what the receivers answer until the tick. It returns false when ctx ends.
func (a *Alerter) AwaitAnswers(ctx context.Context, tick <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case got := <-a.answers:
			a.answered(ctx, got)
		case <-tick:
			a.answeredAll(ctx) // after a long round hardly one was read above
			return true
		}
	}
}

// Close ends the alerter, after the end of its context. What a receiver accepted meanwhile is
// recorded: the next server must not send it again.
func (a *Alerter) Close(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		a.sending.Wait()
		close(ended)
	}()
	for open := true; open; {
		select {
		case got := <-a.answers:
			a.answered(ctx, got)
		case <-ended:
			open = false
		}
	}
	a.answeredAll(ctx)
}

// Judge judges the alerts of a topic about which the server decides. What cannot be read might be a
// reason to alert, so no incident is over meanwhile. Nor is one of letters while a group that
// failed there is among the guards of the source: its letters stop for that reason.
func (a *Alerter) Judge(ctx context.Context, t *watch.Topic, now time.Time, rules []rule.Rule, groups *held.Watch) {
	progress := t.Index.Progress()
	if progress.Read.IsZero() {
		return // what is unknown is no reason to alert
	}
	var guarded dlq.Filter
	for _, g := range groups.Of(t.Source) {
		guarded.Groups = append(guarded.Groups, g.Group)
	}
	stop := len(guarded.Groups) > 0 && !t.Index.LastEntered(&guarded).IsZero()
	f, is := watch.FiguresOf(t, now, rules), t.Settings.Thresholds
	f.Standstills = watch.StandstillsOf(t, groups)
	for _, kind := range watch.AlertKinds {
		key := incidentKey{t.DeadLetterTopic.Topic, kind.Name}
		follows := a.follow(t, key)
		due, stays := kind.Due(&f, is, now), stop
		known := watch.IsWhole(progress.Problem)
		if kind.Lasts != nil { // the groups tell, and not the letters
			stays, known = kind.Lasts(&f, is), true
		}
		if stays && due == nil {
			follows.Stay()
		}
		changed := (due != nil || known && !stays) && follows.Observe(now, due)
		if changed {
			a.changed(ctx, key, follows)
		}
		if a.send(key, follows, func() bool { return !a.cfg.Owns(key.topic) }) || changed || follows.unrecorded.Load() && t.MayRecord(now) {
			a.recordIncident(ctx, t, key, follows)
		}
	}
	if note := t.Classes.Remember(); note != nil && t.MayRecord(now) {
		t.Classes.Remembers(note)
		a.writeNote(ctx, t, watch.ClassesNote, note, func() { t.Classes.Remembers(nil) })
	}
}

// follow returns what the server knows of an incident.
func (a *Alerter) follow(t *watch.Topic, key incidentKey) *followed {
	note := t.Index.Noted(a.noteOf(key.kind))
	follows := a.followed[key]
	if follows != nil && a.stands(follows, note) {
		follows.of, follows.left, follows.ended = t, time.Time{}, false
		return follows
	}
	state, err := a.parse(t, key.kind)
	if err != nil {
		a.cfg.Log.Warn("siding: the note of an incident cannot be read; the incident begins anew", "topic", key.topic, "alert", key.kind, "error", err)
	}
	a.news++
	for _, r := range a.cfg.Receivers { // a rate needs the value before the first one
		a.cfg.Meter.GaveUp(key.topic, r.Name, 0)
	}
	follows = &followed{Follower: incident.Follower{State: state}, of: t, news: a.news, asked: map[string]bool{}, recorded: string(note)}
	a.followed[key] = follows
	return follows
}

// parse reads what a ledger has of an incident. Servers of older versions had one note for all
// groups: that one counts until there is one of this group.
func (a *Alerter) parse(t *watch.Topic, kind string) (incident.State, error) {
	note := t.Index.Noted(a.noteOf(kind))
	if note != nil {
		return incident.Parse(note)
	}
	old, err := incident.Parse(t.Index.Noted(watch.AlertNote(watch.DefaultGroup, kind)))
	if err != nil || old.Addressed != nil {
		return incident.State{}, nil //nolint:nilerr // it is another group's
	}
	return old, nil
}

func (a *Alerter) noteOf(kind string) string { return watch.AlertNote(a.cfg.Group, kind) }

// stands reports whether what this server knows of an incident counts, and not the note. While the
// server was suspended, another one may have owned the topic, and notified people: then its note
// counts. A note that is gone is written anew.
func (a *Alerter) stands(f *followed, note []byte) bool {
	if string(note) == f.recorded {
		return true
	}
	if note == nil { // the ledger was recreated
		f.recorded = ""
		f.unrecorded.Store(true)
		return true
	}
	if state, err := incident.Parse(note); err != nil || state.By != a.me {
		return false
	}
	f.recorded = string(note)
	return true
}

// recordIncident writes what the server knows of an incident to the topic's ledger, and waits for
// nothing. A note that could not be written is tried again.
func (a *Alerter) recordIncident(ctx context.Context, t *watch.Topic, key incidentKey, f *followed) {
	f.By = a.me
	f.unrecorded.Store(false)
	a.writeNote(ctx, t, a.noteOf(key.kind), f.Note(), func() { f.unrecorded.Store(true) })
}

// retryNotes is how long after a note that could not be written the next one is tried.
const retryNotes = 30 * time.Second

// writeNote writes a note to the topic's ledger in the background, and calls failed if that was in
// vain. After that the ledger rests, unless it is another one now.
func (a *Alerter) writeNote(ctx context.Context, t *watch.Topic, name string, value []byte, failed func()) {
	if t.HasLedger() != nil { // the log has it
		failed()
		return
	}
	a.cfg.Writer.Write(ctx, t.Index.Note(name, value), func(err error) {
		if err == nil {
			return
		}
		if !errors.Is(err, notes.ErrRecreated) {
			t.RestRecords(time.Now().Add(retryNotes))
		}
		failed()
		a.cfg.Log.Warn("siding: the ledger could not be written, and is tried again; until then another server may tell of an incident again", "topic", t.DeadLetterTopic.Topic, "note", name, "ledger", t.Ledger, "error", err)
	})
}

// changed begins to notify of a change: what was sent before counts no more.
func (a *Alerter) changed(ctx context.Context, key incidentKey, f *followed) {
	a.news++
	f.news, f.asked, f.refused = a.news, map[string]bool{}, false
	a.cfg.Log.Log(ctx, slog.LevelWarn, "siding: an incident of a dead-letter topic", "topic", key.topic, "alert", key.kind, "severity", f.Severity, "text", f.Text, "over", !f.On(), "receivers", len(a.awaiting(key, f)))
}

// awaiting returns the receivers that want the last change of an incident, and were not asked to
// take it yet.
func (a *Alerter) awaiting(key incidentKey, f *followed) (to []Receiver) {
	for _, r := range a.cfg.Receivers {
		if r.wants(key.topic, f.Severity) && f.Awaits(r.Name) && !f.asked[r.Name] {
			to = append(to, r)
		}
	}
	return to
}

// send sends the last change of an incident to the receivers that await it, unless drop says
// otherwise by then. It reports whether that is to be recorded. One that has no room is asked again
// the next time.
func (a *Alerter) send(key incidentKey, f *followed, drop func() bool) (record bool) {
	to := a.awaiting(key, f)
	if len(to) == 0 {
		return false
	}
	message, news, full := newsOf(a.cfg.URL, key.topic, key.kind, &f.State), f.news, false
	message.Drop = drop
	if t := a.cfg.Topic(key.topic); t != nil {
		message.Owner, message.Runbook, message.Note = t.Settings.Owner, t.Settings.Runbook, t.Settings.Note
	}
	for _, r := range to {
		message.Done = func(err error) {
			if err != nil && !errors.Is(err, notify.ErrDropped) {
				a.cfg.Meter.GaveUp(key.topic, r.Name, 1)
				a.cfg.Log.Error("siding: a notification was given up", "receiver", r.Name, "topic", key.topic, "alert", key.kind, "error", err)
			}
			a.answers <- answer{key, r.Name, news, err} // Close reads the last ones
		}
		if !r.Send(message) {
			full = true
			continue
		}
		f.asked[r.Name] = true
		record = f.Address(r.Name) || record
	}
	if full && !f.refused {
		a.cfg.Log.Warn("siding: a notification waits for room: too many wait for a receiver already", "topic", key.topic, "alert", key.kind, "most", MostWaiting)
	}
	f.refused = full
	return record
}

// answeredAll registers the answers that have come, and waits for no further ones. topics returns a
// topic by its name, or nil.
func (a *Alerter) answeredAll(ctx context.Context) {
	for {
		select {
		case got := <-a.answers:
			a.answered(ctx, got)
		default:
			return
		}
	}
}

// answered registers what became of a message.
func (a *Alerter) answered(ctx context.Context, got answer) {
	f := a.followed[got.incidentKey]
	if f == nil || f.news != got.news || f.ended {
		return // there is newer news, or none for this server to send
	}
	switch {
	case errors.Is(got.err, notify.ErrDropped):
		delete(f.asked, got.receiver) // it is asked again, once the topic is this server's
		return
	case got.err != nil:
		f.GiveUp(got.receiver, got.err.Error())
	default:
		f.Accepted(got.receiver)
	}
	t := a.cfg.Topic(got.topic)
	if t == nil || !f.left.IsZero() {
		f.unrecorded.Store(true) // another server owns the topic
		return
	}
	a.recordIncident(ctx, t, got.incidentKey, f)
}
