// Package integration runs real Apache Kafka for tests.
//
// [StartKafka] starts a cluster in containers and ends it with the test; [Shared] starts one for
// all tests of a package. Siding's own suites use nothing else, and neither need the suites of the
// services that embed siding:
//
//	func TestBilling(t *testing.T) {
//		kafka := integration.StartKafka(t)
//		c, err := consumer.New(consumer.Config{Kafka: kafka.Opts(), …})
//		…
//	}
//
// A Docker Engine is needed. Where none answers the test is skipped and says why, except in CI (the
// environment variable CI is true), where the skip is a failure: a suite that nobody runs must not
// look like one that passed.
//
// The image is apache/kafka:4.3.0 unless the environment variable SIDING_KAFKA_IMAGE or [WithImage]
// names another one that takes the same KAFKA_* environment.
//
// All else about containers is set as for any user of testcontainers:
// TESTCONTAINERS_HOST_OVERRIDE=localhost where it looks for the published ports on the wrong host,
// as on build machines that resemble a container, and TESTCONTAINERS_RYUK_DISABLED=true where its
// reaper can't be pulled.
//
// It is a module of its own, so that containers' dependencies do not reach the users of siding.
package integration
