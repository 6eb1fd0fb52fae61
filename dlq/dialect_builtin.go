package dlq

// The dialects that are built in. docs/dialects.md names the source of each.

import "slices"

// BuiltinDialects returns the dialects that every reader knows.
func BuiltinDialects() []Dialect {
	return slices.Concat(springDialects(), kafkaDialects(), clientDialects())
}

// springDialects are those of Spring's projects.
func springDialects() []Dialect {
	return []Dialect{
		{
			Name: "spring", Detect: []string{"kafka_dlt-original-topic"},
			Topic: "kafka_dlt-original-topic", Partition: "kafka_dlt-original-partition", Offset: "kafka_dlt-original-offset",
			Timestamp: "kafka_dlt-original-timestamp", Group: "kafka_dlt-original-consumer-group",
			Class: "kafka_dlt-exception-fqcn", Cause: "kafka_dlt-exception-cause-fqcn", Message: "kafka_dlt-exception-message", Stack: "kafka_dlt-exception-stacktrace",
			KeyClass: "kafka_dlt-key-exception-fqcn", KeyMessage: "kafka_dlt-key-exception-message", KeyStack: "kafka_dlt-key-exception-stacktrace",
			Numbers: BigEndian, Wrappers: springWrappers,
			Own: []string{"kafka_dlt-*", "springDeserializerExceptionValue", "springDeserializerExceptionKey"},
		},
		{
			Name: "spring-retry", Detect: []string{"kafka_original-topic"},
			Topic: "kafka_original-topic", Partition: "kafka_original-partition", Offset: "kafka_original-offset",
			Timestamp: "kafka_original-timestamp", Group: "kafka_dlt-original-consumer-group", Attempts: "retry_topic-attempts", NextAttempt: true,
			Class: "kafka_exception-fqcn", Cause: "kafka_exception-cause-fqcn", Message: "kafka_exception-message", Stack: "kafka_exception-stacktrace",
			KeyClass: "kafka_key-exception-fqcn", KeyMessage: "kafka_key-exception-message", KeyStack: "kafka_key-exception-stacktrace",
			Numbers: BigEndian, Wrappers: springWrappers,
			Own: []string{
				"kafka_original-*", "kafka_exception-*", "kafka_key-exception-*", "retry_topic-*", "kafka_dlt-original-consumer-group",
				"springDeserializerExceptionValue", "springDeserializerExceptionKey",
			},
		},
		{
			Name: "spring-cloud-stream", Detect: []string{"x-original-topic", "x-exception-fqcn"},
			Topic: "x-original-topic", Partition: "x-original-partition", Offset: "x-original-offset", Timestamp: "x-original-timestamp",
			Class: "x-exception-fqcn", Message: "x-exception-message", Stack: "x-exception-stacktrace",
			Numbers: BigEndian, Wrappers: springWrappers,
			Own: []string{"x-original-topic", "x-original-partition", "x-original-offset", "x-original-timestamp", "x-original-timestamp-type", "x-exception-*"},
		},
	}
}

// kafkaDialects are those of Apache Kafka itself.
func kafkaDialects() []Dialect {
	return []Dialect{
		{
			Name: "connect", Detect: []string{"__connect.errors.topic"},
			Topic: "__connect.errors.topic", Partition: "__connect.errors.partition", Offset: "__connect.errors.offset",
			Group: "__connect.errors.connector.name", GroupPrefix: "connect-",
			Class: "__connect.errors.exception.class.name", Message: "__connect.errors.exception.message", Stack: "__connect.errors.exception.stacktrace",
			TimestampKept: true, Wrappers: []string{"org.apache.kafka.connect.errors.ConnectException"},
			Own: []string{"__connect.errors.*"},
		},
		{
			Name: "streams", Detect: []string{"__streams.errors.exception"},
			Topic: "__streams.errors.topic", Partition: "__streams.errors.partition", Offset: "__streams.errors.offset",
			Class: "__streams.errors.exception", Message: "__streams.errors.message", Stack: "__streams.errors.stacktrace",
			TimestampKept: true, Wrappers: []string{"org.apache.kafka.streams.errors.StreamsException"},
			Own: []string{"__streams.errors.*"},
		},
		{
			Name: "share-group", Detect: []string{"__dlq.errors.topic"},
			Topic: "__dlq.errors.topic", Partition: "__dlq.errors.partition", Offset: "__dlq.errors.offset",
			Group: "__dlq.errors.group", Attempts: "__dlq.errors.delivery.count", Message: "__dlq.errors.message",
			OmitsValue: true, Own: []string{"__dlq.errors.*"},
		},
	}
}

// clientDialects are those of further frameworks.
func clientDialects() []Dialect {
	return []Dialect{
		{
			Name: "smallrye", Detect: []string{"dead-letter-reason"},
			Topic: "dead-letter-topic", Partition: "dead-letter-partition", Offset: "dead-letter-offset",
			Class: "dead-letter-exception-class-name", Cause: "dead-letter-cause-class-name", Message: "dead-letter-reason",
			Sets: NewestFirst, Own: []string{
				"dead-letter-topic", "dead-letter-partition", "dead-letter-offset", "dead-letter-exception-class-name", "dead-letter-cause-class-name",
				"dead-letter-reason", "dead-letter-cause",
			},
		},
		{
			Name: "karafka", Detect: []string{"source_topic", "source_partition", "source_offset", "source_consumer_group", "source_attempts"},
			Topic: "source_topic", Partition: "source_partition", Offset: "source_offset", Group: "source_consumer_group", Attempts: "source_attempts",
			Own: []string{"source_topic", "source_partition", "source_offset", "source_consumer_group", "source_attempts", "source_trace_id"},
		},
		{
			Name: "watermill", Detect: []string{"reason_poisoned"},
			Topic: "topic_poisoned", Message: "reason_poisoned",
			Own: []string{"reason_poisoned", "topic_poisoned", "handler_poisoned", "subscriber_poisoned"},
		},
	}
}

// springWrappers are what Spring's containers throw around a listener's exception.
var springWrappers = []string{
	"org.springframework.kafka.listener.ListenerExecutionFailedException", "org.springframework.kafka.listener.TimestampedException",
	"org.springframework.messaging.MessageHandlingException",
}
