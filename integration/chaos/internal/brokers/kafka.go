package brokers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sidingkafka/siding/integration"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// kafka are three real brokers in containers, each behind a proxy.
type kafka struct {
	proxied
	cluster *integration.Kafka
}

// StartKafka starts the containers, and gives members all rights.
func StartKafka(ctx context.Context) (Cluster, error) {
	k := new(kafka)
	for range Nodes {
		p, err := newProxy()
		if err != nil {
			return nil, err
		}
		k.proxies = append(k.proxies, p)
	}
	var mu sync.Mutex
	var err error
	k.cluster, err = integration.Start(ctx, integration.WithBrokers(Nodes),
		integration.WithConfig("group.consumer.session.timeout.ms", fmt.Sprint(trace.Session.Milliseconds())),
		integration.WithConfig("group.min.session.timeout.ms", "1000"),
		// The controller would move leaders, and with them coordinators, every five minutes: also
		// in the time without faults.
		integration.WithConfig("auto.leader.rebalance.enable", "false"),
		integration.WithUser(adminUser, password), integration.WithUser(MemberUser, password),
		integration.WithConfig("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
		integration.WithConfig("super.users", "User:ANONYMOUS;User:"+adminUser),
		integration.WithAnnounced(func(node int, own string) string {
			mu.Lock()
			defer mu.Unlock()
			k.proxies[node-1].Set(func(p *Proxy) { p.target = own })
			return k.proxies[node-1].addr()
		}))
	if err != nil {
		k.proxied.close()
		return nil, err
	}
	if err := k.grant(); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// The users of the brokers: the run itself, and its members. Each has the same password.
const (
	adminUser  = "admin"
	MemberUser = "member"
	password   = "secret"
)

// Login logs in as a user.
func Login(user string) kgo.Opt {
	return kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism())
}

// Options log in as the admin.
func (k *kafka) Options(direct bool) []kgo.Opt {
	return append(k.proxied.Options(direct), Login(adminUser))
}

func (k *kafka) Can() Capability { return CanProxy | CanRefuse | CanEnd | CanFreeze | CanDeny }

// admin calls do with a client of the admin.
func (k *kafka) admin(do func(context.Context, *kadm.Client) error) error {
	cl, err := kgo.NewClient(k.Options(true)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return do(ctx, kadm.NewClient(cl))
}

// grant gives members all rights on the topics and groups of a run.
func (k *kafka) grant() error {
	return k.admin(func(ctx context.Context, adm *kadm.Client) error {
		return created(adm.CreateACLs(ctx, kadm.NewACLs().Topics("chaos-").Groups("chaos-").TransactionalIDs("*").
			ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpAll).Allow("User:"+MemberUser).AllowHosts("*")))
	})
}

func created(results kadm.CreateACLsResults, err error) error {
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// Deny adds a rule that forbids it, which goes before those that allow it. Of a group, all is
// forbidden for which members need it: they can then not even be members.
func (k *kafka) Deny(of Right) (heal func() error, err error) {
	rule := func() *kadm.ACLBuilder {
		b := kadm.NewACLs().ResourcePatternType(kadm.ACLPatternLiteral).Deny("User:" + MemberUser).DenyHosts("*")
		switch {
		case of.Group != "":
			return b.Groups(of.Group).Operations(kadm.OpRead)
		case of.Write:
			return b.Topics(of.Topic).Operations(kadm.OpWrite)
		}
		return b.Topics(of.Topic).Operations(kadm.OpRead)
	}
	heal = func() error {
		return k.admin(func(ctx context.Context, adm *kadm.Client) error {
			results, err := adm.DeleteACLs(ctx, rule())
			for _, r := range results {
				err = errors.Join(err, r.Err)
			}
			return err
		})
	}
	return heal, k.admin(func(ctx context.Context, adm *kadm.Client) error { return created(adm.CreateACLs(ctx, rule())) })
}

func (k *kafka) End(node int) error {
	return k.cluster.Inject(context.Background(), integration.FaultKill, node+1)
}

func (k *kafka) Begin(node int) error {
	return k.cluster.Inject(context.Background(), integration.FaultRestart, node+1)
}

func (k *kafka) Freeze(node int, on bool) error {
	f := integration.FaultUnpause
	if on {
		f = integration.FaultPause
	}
	return k.cluster.Inject(context.Background(), f, node+1)
}

// Refuse asks for more replicas than there are.
func (k *kafka) Refuse(topic string, _ *rand.Rand) (heal func() error, err error) {
	set := func(n string) error {
		return k.admin(func(ctx context.Context, adm *kadm.Client) error {
			responses, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: &n}}, topic)
			for _, r := range responses {
				err = errors.Join(err, r.Err)
			}
			return err
		})
	}
	return func() error { return set("2") }, set("4")
}

func (k *kafka) Close() error {
	err := k.cluster.Stop()
	k.proxied.close()
	return err
}

func (k *kafka) Restart(bool, time.Duration) error           { return errors.ErrUnsupported }
func (k *kafka) Older(trace.TP, func(int64)) error           { return errors.ErrUnsupported }
func (k *kafka) MoveLeaders() error                          { return errors.ErrUnsupported }
func (k *kafka) MoveCoordinators() error                     { return errors.ErrUnsupported }
func (k *kafka) Answer(Fault) (heal func() error, err error) { return nil, errors.ErrUnsupported }

// own is the caller's cluster, to which nothing can be done.
type own struct {
	kafka
	opts []kgo.Opt
}

// Own is the cluster that these options name.
func Own(opts []kgo.Opt) Cluster { return &own{opts: opts} }

func (o *own) Can() Capability { return 0 }

func (o *own) Options(bool) []kgo.Opt { return o.opts }

func (o *own) Seeds() []string { return nil }

func (o *own) Close() error { return nil }
