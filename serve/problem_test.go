package serve

import (
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// The text of an error may quote a letter. What the server hides, it hides there, too. So it does
// with the brokers' addresses, which such texts had.
func TestServer_TextsOfErrorsHideWhatIsHidden(t *testing.T) {
	t.Parallel()
	rules, err := (&Redact{Patterns: []string{"hunter[0-9]"}}).rules()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{parts: parts{redact: rules}}
	told, err := s.told(nil)(nil, "", modelOf(failure.NewProblem(api.EditFailed, "the value hunter2 is no object")))
	if p, ok := told.(*huma.ErrorModel); err != nil || !ok || p.Detail != "the value [redacted] is no object" || p.Type != api.EditFailed.Type() {
		t.Errorf("the problem is %+v, %v", told, err)
	}
	const broker, clean = "unable to dial: dial tcp 10.9.8.7:9092: connection refused", "unable to dial: dial tcp: connection refused"
	told, err = s.told(nil)(nil, "", modelOf(failure.NewProblem(api.Kafka, "%s", broker)))
	if p, ok := told.(*huma.ErrorModel); err != nil || !ok || p.Detail != clean {
		t.Errorf("the problem is %+v, %v", told, err)
	}
}
