package integration

import (
	"strings"
	"testing"
)

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
