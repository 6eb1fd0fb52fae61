package siding

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kfake"
	_ "github.com/twmb/franz-go/pkg/kgo"
	_ "github.com/twmb/franz-go/pkg/kmsg"
	_ "github.com/twmb/franz-go/plugin/kslog"
	_ "go.opentelemetry.io/otel"
	_ "go.opentelemetry.io/otel/metric"
	_ "go.opentelemetry.io/otel/propagation"
	_ "go.opentelemetry.io/otel/trace"
	_ "go.uber.org/goleak"
	_ "pgregory.net/rapid"
)
