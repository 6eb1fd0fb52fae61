package chaos

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/member"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// memberDefects and brokerDefects are filled by tests, which see that the checker finds them.
var (
	memberDefects = map[string]func(*consumer.Config){}
	brokerDefects = map[string]func(*kfake.Cluster){}
)

// Child must be the first call of a program that calls [Run], as [Main] does it: in a process that
// a run has started, it does that process's work and never returns. Elsewhere it returns at once.
// The Config must be the one that Run gets; it provides what cannot be handed to a process, such as
// the handler.
func Child(cfg Config) {
	child.Serve(map[string]child.Role{
		member.Role: func(job []byte, in *bufio.Reader) error {
			var j trace.Job
			if err := json.Unmarshal(job, &j); err != nil {
				return err
			}
			go child.EndWithParent(in)
			return member.Run(member.Settings{Handler: cfg.Handler, Kafka: cfg.Kafka, Change: func(c *consumer.Config) {
				if cfg.Consumer != nil {
					cfg.Consumer(c)
				}
				if inject := memberDefects[j.Defect]; inject != nil {
					inject(c)
				}
			}}, j)
		},
		brokers.Role: func(job []byte, in *bufio.Reader) error {
			var j brokers.Job
			if err := json.Unmarshal(job, &j); err != nil {
				return err
			}
			return brokers.Serve(j, in, os.Stdout, brokerDefects[j.Defect])
		},
	})
}
