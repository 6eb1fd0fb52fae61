// Package programs has the programs that are compared. Each does a job in the way that its library
// documents, and none does more than the job needs.
package programs

import (
	"context"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// A Program consumes the job's topic with the handler until the context ends, and commits then. A
// record that fails for the last time goes to the dead-letter topic.
type Program struct {
	Name string
	Run  func(context.Context, work.Job, work.Handler) error
	// Provisions says that the program creates its dead-letter topic.
	Provisions bool
}

// All are the programs, in the order of the tables.
var All = []Program{
	{Name: "siding", Run: siding, Provisions: true},
	{Name: "franz-go", Run: franz},
	{Name: "sarama", Run: saramaGroup},
	{Name: "kafka-go", Run: kafkaGo},
	{Name: "watermill", Run: watermill},
}
