package httpapi

import (
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/internal/redact"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// The text of an error may quote a letter. What the server hides, it hides there, too. So it does
// with the brokers' addresses, which such texts had.
func TestAPI_TextsOfErrorsHideWhatIsHidden(t *testing.T) {
	t.Parallel()
	rules, err := redact.Parse(nil, nil, []redact.Text{{Text: "hunter[0-9]"}})
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{Redact: rules})
	finished, err := h.finishProblem(nil)(nil, "", admit.ModelOf(failure.NewProblem(api.EditFailed, "the value hunter2 is no object")))
	if p, ok := finished.(*huma.ErrorModel); err != nil || !ok || p.Detail != "the value [redacted] is no object" || p.Type != api.EditFailed.Type() {
		t.Errorf("the problem is %+v, %v", finished, err)
	}
	const broker, clean = "unable to dial: dial tcp 10.9.8.7:9092: connection refused", "unable to dial: dial tcp: connection refused"
	finished, err = h.finishProblem(nil)(nil, "", admit.ModelOf(failure.NewProblem(api.Kafka, "%s", broker)))
	if p, ok := finished.(*huma.ErrorModel); err != nil || !ok || p.Detail != clean {
		t.Errorf("the problem is %+v, %v", finished, err)
	}
}
