package brokers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// embedded is the embedded broker as a run sees it.
type embedded struct {
	proxied
	job Job
	log string

	mu   sync.Mutex // one order at a time
	proc *child.Process
	last int64 // id of the last fault
}

// StartEmbedded starts the broker on the data in dir. Its log goes to a file.
func StartEmbedded(dir, log, defect string) (Cluster, error) {
	e := &embedded{job: Job{Dir: dir, Defect: defect}, log: log}
	for range Nodes {
		p, err := newProxy()
		if err != nil {
			return nil, err
		}
		port, err := lowPort()
		if err != nil {
			return nil, err
		}
		p.Set(func(p *Proxy) { p.target = fmt.Sprintf("127.0.0.1:%d", port) })
		e.job.Ports = append(e.job.Ports, port)
		e.job.Announced = append(e.job.Announced, p.addr())
		e.proxies = append(e.proxies, p)
	}
	if err := e.start(); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *embedded) start() error {
	p, err := child.Start(Role, e.job, e.log)
	if err != nil {
		return err
	}
	line, err := p.Out.ReadString('\n')
	if err != nil {
		p.Kill()
		reason, _ := os.ReadFile(e.log)
		return fmt.Errorf("the embedded broker does not start, and says %q: %w; the end of its log: %s", line, err, reason[max(0, len(reason)-1000):])
	}
	e.proc = p
	return nil
}

// do gives an order and awaits its answer.
func (e *embedded) do(o order) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.give(o)
}

func (e *embedded) give(o order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := e.proc.In.Write(append(line, '\n')); err != nil {
		return err
	}
	answer, err := e.proc.Out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the embedded broker ended: %w", err)
	}
	if answer != "ok\n" {
		return errors.New(answer)
	}
	return nil
}

// Answer makes the broker answer with a fault until the returned function is called.
func (e *embedded) Answer(f Fault) (heal func() error, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	id := e.last
	return func() error { return e.do(order{Op: "heal", ID: id}) }, e.give(order{Op: "fault", ID: id, Fault: f})
}

// controllerNode is the node that answers requests for the whole cluster. If it were removed, the
// embedded broker would never choose another one.
const controllerNode = Nodes - 1

// End ends a node: its connections end, and others lead its partitions. The controller's partitions
// have no leader that can be reached.
func (e *embedded) End(node int) error {
	e.proxies[node].Set(func(p *Proxy) { p.down = true })
	e.proxies[node].Cut()
	if node == controllerNode {
		return nil
	}
	return e.do(order{Op: "remove", Node: node})
}

// Begin starts a node that was ended.
func (e *embedded) Begin(node int) error {
	defer e.proxies[node].Set(func(p *Proxy) { p.down = false })
	if node == controllerNode {
		return nil
	}
	return e.do(order{Op: "add", Node: node})
}

// Restart ends the broker's process, at once or in order, and starts another on its data.
func (e *embedded) Restart(atOnce bool, pause time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	epochs, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	if atOnce {
		e.proc.Kill()
	} else {
		if err := e.give(order{Op: "close"}); err != nil {
			return err
		}
		<-e.proc.Exited
		// The embedded broker takes members that expired meanwhile for the owners of their
		// partitions, for ever. Without this file all members join again, as after a kill.
		if err := os.Remove(filepath.Join(e.job.Dir, "session_state.json")); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	e.unreachable(true)
	defer e.unreachable(false)
	<-time.After(pause)
	if err := e.start(); err != nil {
		return err
	}
	return e.raiseEpochs(epochs)
}

func (e *embedded) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.give(order{Op: "close"})
	e.proc.Kill()
	e.proxied.close()
	return err
}

func (e *embedded) Can() Capability {
	return CanProxy | CanAnswer | CanRefuse | CanEnd | CanFreeze | CanRestart | CanDeny
}

func (e *embedded) Freeze(node int, on bool) error {
	e.proxies[node].Set(func(p *Proxy) { p.frozen = on })
	return nil
}

// Deny answers as a broker does that lacks a permission. Of a group, it takes the one to commit.
func (e *embedded) Deny(of Right) (heal func() error, err error) {
	switch {
	case of.Group != "":
		return e.Answer(Fault{Keys: []int16{8}, Group: of.Group, Code: 30})
	case of.Write:
		return e.Answer(Fault{Keys: []int16{0}, Topic: of.Topic, Code: 29})
	}
	return e.Answer(Fault{Keys: []int16{1}, Topic: of.Topic, Code: 29})
}

func (e *embedded) MoveLeaders() error { return e.do(order{Op: "shuffle"}) }

func (e *embedded) MoveCoordinators() error { return e.do(order{Op: "rehash"}) }

func (e *embedded) Refuse(topic string, rnd *rand.Rand) (heal func() error, err error) {
	return e.Answer(Fault{Keys: []int16{0}, Topic: topic, Code: []int16{19, 29, 56}[rnd.IntN(3)]})
}

// Older kills the broker's process, takes the end of a partition's log, and starts another on the
// rest, with a leader epoch above those that were lost: as after an unclean election. gone is
// called while no broker runs.
func (e *embedded) Older(of trace.TP, gone func(from int64)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unreachable(true)
	defer e.unreachable(false)
	epochs, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	e.proc.Kill()
	<-time.After(500 * time.Millisecond) // an election takes as long
	from, ok, err := cutLog(filepath.Join(e.job.Dir, "partitions", fmt.Sprintf("%s-%d", of.Topic, of.Partition), "0.dat"))
	if err == nil && ok {
		gone(from)
	}
	if started := e.start(); started != nil {
		return started
	}
	if err != nil {
		return err
	}
	epochs[of]++
	return e.raiseEpochs(epochs)
}

// unreachable makes all nodes unreachable for the members, or ends that.
func (e *embedded) unreachable(on bool) {
	for _, p := range e.proxies {
		p.Set(func(p *Proxy) { p.down = on })
		if on {
			p.Cut()
		}
	}
}

// raiseEpochs gives each partition a leader epoch that is not below the given one. The embedded
// broker forgets epochs when it is killed, and begins with those of the last records, as no Kafka
// does: members would take the records in place of a lost end for those that they had finished.
func (e *embedded) raiseEpochs(to map[trace.TP]int32) error {
	now, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	var missing int32
	for at, epoch := range to {
		if is, ok := now[at]; ok {
			missing = max(missing, epoch-is)
		}
	}
	for ; missing > 0 && err == nil; missing-- {
		err = e.give(order{Op: "shuffle"}) // raises all epochs by one
	}
	return err
}

// leaderEpochs asks the broker for the partitions' leader epochs.
func (e *embedded) leaderEpochs() (now map[trace.TP]int32, err error) {
	cl, err := kgo.NewClient(e.Options(true)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	admin := kadm.NewClient(cl)
	all, err := admin.Metadata(ctx)
	for ; err != nil || all.Topics.Error() != nil; all, err = admin.Metadata(ctx) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, all.Topics.Error())
		case <-time.After(100 * time.Millisecond): // a fault that answers with errors passes
		}
	}
	now = map[trace.TP]int32{}
	for _, t := range all.Topics {
		for _, p := range t.Partitions {
			now[trace.TP{Topic: p.Topic, Partition: p.Partition}] = p.LeaderEpoch
		}
	}
	return now, nil
}
