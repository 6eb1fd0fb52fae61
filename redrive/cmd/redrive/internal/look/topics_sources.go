package look

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// missingSources reports for each source topic whether it is missing. A list of all topics omits
// what the user may not see, so it asks for those that are not in the list. A source of which
// nothing is known is not in the answer.
func missingSources(ctx context.Context, s *cli.Session, all []subject.Sibling) map[string]any {
	known := map[string]any{}
	// not by kadm, which returns no topic where the user may not see one
	req := kmsg.NewPtrMetadataRequest()
	for _, f := range all {
		if known[f.Source] = false; !f.SourceListed {
			delete(known, f.Source)
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(f.Source)
			req.Topics = append(req.Topics, t)
		}
	}
	if len(req.Topics) == 0 {
		return known
	}
	resp, err := req.RequestWith(ctx, s.Client)
	if err != nil {
		return known
	}
	for _, t := range resp.Topics {
		if missing := t.ErrorCode == kerr.UnknownTopicOrPartition.Code; t.Topic != nil && (missing || t.ErrorCode == 0) {
			known[*t.Topic] = missing
		}
	}
	return known
}
