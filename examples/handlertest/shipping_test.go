package handlertest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// carrier is a test double of the foreign service, and the only one: broker, topics and siding are
// real.
type carrier struct {
	answers []error // call by call; the last one repeats for ever
	keys    []string
}

func (c *carrier) Label(_ context.Context, key string, _ Parcel) error {
	c.keys = append(c.keys, key)
	return c.answers[min(len(c.keys), len(c.answers))-1]
}

// status is an error like an HTTP client's.
type status struct {
	code  int
	after time.Duration
}

func (s status) Error() string             { return http.StatusText(s.code) }
func (s status) StatusCode() int           { return s.code }
func (s status) RetryAfter() time.Duration { return s.after }

var down = status{code: http.StatusServiceUnavailable}

// with runs a test on an embedded broker in virtual time, with one parcel.
func with(t *testing.T, c *carrier, value string, test func(*testing.T, *consumertest.Kafka, *kgo.Record)) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("parcels", 3)
		k.Run(Config(c))
		test(t, k, k.Produce(&kgo.Record{Topic: "parcels", Key: []byte("order-7"), Value: []byte(value)})[0])
		k.Conserved() // the parcel is in exactly one place
	})
}

const parcel = `{"order":"7","address":"Main Street 1"}`

func TestACarrierThatIsDownIsAskedAgainLater(t *testing.T) {
	c := &carrier{answers: []error{down, down, nil}}
	with(t, c, parcel, func(t *testing.T, k *consumertest.Kafka, r *kgo.Record) {
		k.Parked(r, 5*time.Second, "http.503")
		k.Parked(r, 30*time.Second, "http.503")
		k.Handled(r, 1)
		for _, key := range c.keys {
			if key != c.keys[0] {
				t.Errorf("keys %q: a retry with another key may make another label", c.keys)
			}
		}
	})
}

func TestACarrierThatStaysDownEndsInTheDeadLetterTopic(t *testing.T) {
	with(t, &carrier{answers: []error{down}}, parcel, func(t *testing.T, k *consumertest.Kafka, r *kgo.Record) {
		letter := k.DeadLettered(r, headers.ReasonExhausted)
		if letter.Attempts != 4 || letter.Class != "http.503" {
			t.Errorf("dead-lettered after %d attempts as %s, want 4 and http.503", letter.Attempts, letter.Class)
		}
	})
}

// Jitter adds up to a tenth of the wait that the carrier asked for.
func TestACarrierThatSaysWhenIsNotAskedBefore(t *testing.T) {
	const asked = 20 * time.Minute
	c := &carrier{answers: []error{status{http.StatusTooManyRequests, asked}, nil}}
	with(t, c, parcel, func(t *testing.T, k *consumertest.Kafka, r *kgo.Record) {
		start := time.Now()
		k.Handled(r, 1)
		if got := time.Since(start); got < asked || got > asked+asked/10+time.Second {
			t.Errorf("handled after %v, want the %v that the carrier asked for, and a tenth more at most", got, asked)
		}
	})
}

func TestAParcelThatCanNotBeSentIsNotTriedAgain(t *testing.T) {
	with(t, &carrier{answers: []error{nil}}, `{"order":"7"}`, func(t *testing.T, k *consumertest.Kafka, r *kgo.Record) {
		letter := k.DeadLettered(r, headers.ReasonTerminal)
		if letter.Attempts != 1 || letter.Class != "parcel.address" {
			t.Errorf("dead-lettered after %d attempts as %s, want 1 and parcel.address", letter.Attempts, letter.Class)
		}
	})
}

func TestAPayloadThatIsNoParcelIsKeptAsItCame(t *testing.T) {
	with(t, &carrier{answers: []error{nil}}, `{"order":`, func(_ *testing.T, k *consumertest.Kafka, r *kgo.Record) {
		k.DeadLettered(r, headers.ReasonDecode)
	})
}

// A bug is an unknown error, so it is terminal: a retry would not repair it.
func TestABugIsADeadLetterAtOnce(t *testing.T) {
	c := &carrier{answers: []error{errors.New("unexpected label format")}}
	with(t, c, parcel, func(_ *testing.T, k *consumertest.Kafka, r *kgo.Record) {
		k.DeadLettered(r, headers.ReasonTerminal)
	})
}

// The letters of a night, as redrive export --sample 3 --redact-header customer wrote them: a
// producer had left out the address. The edit is the one that the redrive will make, and the test
// shows beforehand that the letters are handled then.
func TestTheLettersOfOPS4711AreFixedByThePatch(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		patch := redrive.Edit{Patch: []byte(`{"address":"the depot"}`)}
		letters := k.Import("testdata/ops-4711.jsonl", func(r *kgo.Record) (err error) {
			r.Headers, r.Value, err = patch.Apply(r.Headers, r.Value)
			return err
		})
		k.Run(Config(&carrier{answers: []error{nil}}))
		k.Fixed(letters)
	})
}
