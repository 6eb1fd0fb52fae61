package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestMissingDockerSkipsButFailsInCI(t *testing.T) {
	for ci, want := range map[string]string{"": "skip", "false": "skip", "0": "skip", "true": "fail", "1": "fail"} {
		t.Setenv("CI", ci)
		got := &ending{TB: t}
		withoutDocker(got, errors.New("no such socket"))
		if got.word != want || !strings.Contains(got.why, "no such socket") {
			t.Errorf("CI=%q: %s because %q, want %s because of the error", ci, got.word, got.why, want)
		}
	}
}

// ending is a test that only records how it was ended.
type ending struct {
	testing.TB
	word, why string
}

func (e *ending) Skipf(format string, args ...any) {
	e.word, e.why = "skip", fmt.Sprintf(format, args...)
}

func (e *ending) Fatalf(format string, args ...any) {
	e.word, e.why = "fail", fmt.Sprintf(format, args...)
}

// The Engine's own text said only that access to an image was denied.
func TestStartKafka_SaysWhatToDoWithoutTheImage(t *testing.T) {
	t.Parallel()
	requireDocker(t)
	const image = "localhost:1/siding/no-such-kafka:1" // no registry listens there
	_, err := start(t.Context(), []Option{WithImage(image)})
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{"lacks image " + image, "set SIDING_KAFKA_IMAGE", ".ci/kafka-image/build.sh"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}
