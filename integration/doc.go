// Package integration runs real Apache Kafka for tests, and breaks it on purpose.
//
// [StartKafka] starts a cluster in containers and ends it with the test; [Shared] starts one for
// all tests of a package. Siding's own suites use both, and so can the suites of services that
// embed siding:
//
//	func TestBilling(t *testing.T) {
//		kafka := integration.StartKafka(t)
//		c, err := consumer.New(consumer.Config{Kafka: kafka.Opts(), …})
//		…
//	}
//
// A Docker Engine is required. If none answers the test is skipped with the reason. In CI (the
// environment variable CI is true) the skip is a failure: a suite that never runs must not look as
// if it had passed.
//
// The image is apache/kafka:4.3.0, unless the environment variable SIDING_KAFKA_IMAGE or
// [WithImage] names another one that accepts the same KAFKA_* environment.
//
// Containers are configured as for any user of testcontainers. Set
// TESTCONTAINERS_HOST_OVERRIDE=localhost if it looks for the published ports on the wrong host, as
// on build machines that resemble a container. Set TESTCONTAINERS_RYUK_DISABLED=true if its reaper
// cannot be pulled.
//
// The package is a module of its own, so that containers' dependencies do not reach the users of
// siding.
package integration
