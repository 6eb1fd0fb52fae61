package headers

import (
	"testing"

	"github.com/sidingkafka/siding/internal/reserved"
)

// The constants are what users compare with, the names of reserved what siding reads and writes.
func TestKeys_AreThoseOfReserved(t *testing.T) {
	t.Parallel()
	keys := map[reserved.Key]string{
		reserved.OriginalTopic: OriginalTopic, reserved.OriginalTopicID: OriginalTopicID,
		reserved.OriginalPartition: OriginalPartition, reserved.OriginalOffset: OriginalOffset,
		reserved.OriginalTimestamp: OriginalTimestamp, reserved.Group: Group, reserved.Attempts: Attempts,
		reserved.ErrorClass: ErrorClass, reserved.ErrorFingerprint: ErrorFingerprint,
		reserved.ErrorMessage: ErrorMessage, reserved.ErrorStack: ErrorStack,
		reserved.FailureReason: FailureReason, reserved.FirstFailedAt: FirstFailedAt,
		reserved.FailedAt: FailedAt, reserved.NotBefore: NotBefore, reserved.Held: Held,
		reserved.Hops: Hops, reserved.History: History, reserved.TraceParent: TraceParent,
		reserved.ConsumerVersion: ConsumerVersion, reserved.Environment: Environment,
		reserved.Host: Host, reserved.RedriveID: RedriveID, reserved.RedriveCount: RedriveCount,
		reserved.RedriveFrom: RedriveFrom, reserved.RedriveOriginal: RedriveOriginal,
		reserved.RedriveAt: RedriveAt, reserved.RedriveMaxAttempts: RedriveMaxAttempts, reserved.ValueOmitted: ValueOmitted,
	}
	for k := reserved.User + 1; k < reserved.Count; k++ {
		if keys[k] != k.String() {
			t.Errorf("%q is read and written, the constant is %q", k, keys[k])
		}
	}
}
