package consumer_test

import (
	"slices"
	"testing"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/suite"
)

// The suite runs on the embedded broker, in virtual time. Its areas are spread over five tests, so
// that none of them is dear under the race detector.
var (
	ofRecords  = []string{"bad", "order", "path", "policy", "secrecy", "size"}
	ofStarts   = []string{"start"}
	ofRestarts = []string{"restart"}
	ofGroups   = []string{"rebalance", "sharing", "topology"}
	ofLogs     = []string{"letters", "log", "outage"}
)

func TestConsumer_SuiteOfRecords(t *testing.T) {
	t.Parallel()
	suite.Run(t, consumertest.Virtual, ofRecords...)
}

func TestConsumer_SuiteOfStarts(t *testing.T) {
	t.Parallel()
	suite.Run(t, consumertest.Virtual, ofStarts...)
}

func TestConsumer_SuiteOfRestarts(t *testing.T) {
	t.Parallel()
	suite.Run(t, consumertest.Virtual, ofRestarts...)
}

func TestConsumer_SuiteOfGroups(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	suite.Run(t, consumertest.Virtual, ofGroups...)
}

func TestConsumer_SuiteOfLogs(t *testing.T) {
	t.Parallel()
	suite.Run(t, consumertest.Virtual, ofLogs...)
}

func TestConsumer_SuiteHasNoOtherArea(t *testing.T) {
	t.Parallel()
	got := slices.Sorted(slices.Values(slices.Concat(ofRecords, ofStarts, ofRestarts, ofGroups, ofLogs)))
	if want := suite.Areas(); !slices.Equal(got, want) {
		t.Errorf("the areas %q run, want %q", got, want)
	}
}
