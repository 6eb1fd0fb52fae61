package consumer_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A consumer that started, took over partitions and stopped left no line about it.
func TestConsumer_LogsItsLife(t *testing.T) {
	each(t, balancers, 4, func(t *testing.T, k *consumertest.Kafka, balancer []kgo.Opt) {
		run := func() (*lines, *consumertest.Consumer) {
			cfg := config(fine)
			cfg.Kafka = balancer
			log := logged(&cfg)
			return log, k.Run(cfg)
		}
		protocol := "protocol=classic"
		if t.Name()[strings.LastIndex(t.Name(), "/")+1:] == "KIP-848" {
			protocol = "protocol=consumer"
		}
		firstLog, first := run()
		firstLog.has(t, 1, "level=INFO", `msg="siding: joined the group" group=billing member=`, protocol, "topics=[orders]")
		firstLog.has(t, 1, "level=INFO", `msg="siding: lanes assigned" group=billing lanes=4 lanes_now=4 partitions=orders/0-3`)

		secondLog, second := run()
		eventually(t, "both have lanes", func() bool { return len(first.Health().Lanes) == 2 && len(second.Health().Lanes) == 2 })
		if drained, revoked := firstLog.with(`msg="siding: lanes drain"`, `why="the group revokes them"`), firstLog.with(`msg="siding: lanes revoked"`, "took="); drained == 0 || revoked != drained {
			t.Errorf("%d lines about draining, %d about what was revoked", drained, revoked)
		}
		if secondLog.with(`msg="siding: lanes assigned"`, "lanes=2 lanes_now=2") == 0 {
			t.Error("no line about the lanes that the second was assigned")
		}
		handledOnce(k, k.Produce(many(40)...))
		stop(t, second)
		stop(t, first)
		firstLog.has(t, 1, `msg="siding: lanes drain"`, `why="Run ends"`, "handlers=0 copies=0 at_most=20s")
		for _, log := range []*lines{firstLog, secondLog} {
			log.has(t, 1, "level=INFO", `msg="siding: stopped"`, "after=", "copies_parked=0 dead_lettered=0 discarded=0")
			log.has(t, 1, `msg="siding: joined the group"`)
		}
	})
}

// After a crash a process said nothing for 44 s: the group waited for the member that had died.
func TestConsumer_TellsThatItWaitsToJoin(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Count: -1, Err: kerr.CoordinatorLoadInProgress})
		cfg := config(fine)
		cfg.Version, cfg.Environment = "v7", "test"
		log := logged(&cfg)
		c := k.Begin(cfg)
		time.Sleep(44 * time.Second)
		log.has(t, 1, `level=INFO msg="siding: starting" group=billing topics=[orders] siding=devel version=v7 environment=test`)
		const waiting = `level=INFO msg="siding: waiting to join the group`
		log.has(t, 2, waiting)
		log.has(t, 1, waiting, "waited=5s")
		log.has(t, 0, "offsets not committed")
		if h := c.Health(); h.Group.CommitError != "" {
			t.Errorf("health has a commit that failed, and there is nothing to commit: %s", h.Group.CommitError)
		}
		refused.Remove()
		handledOnce(k, k.Produce(many(1)...))
		time.Sleep(time.Minute)
		log.has(t, 2, waiting)
		stop(t, c)
	})
}

// The group refused a member's balancer, and the log blamed a former member's session.
func TestConsumer_TellsThatItsBalancersAreRefused(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Count: -1, Err: kerr.InconsistentGroupProtocol})
		cfg := config(fine)
		cfg.Kafka = []kgo.Opt{kgo.Balancers(kgo.RangeBalancer(), kgo.StickyBalancer())}
		log := logged(&cfg)
		c := k.Begin(cfg)
		time.Sleep(20 * time.Second)
		log.has(t, 1, `level=WARN msg="siding: the group's members have no balancer in common`, `balancers="[range sticky]"`, "error=\"INCONSISTENT_GROUP_PROTOCOL")
		log.has(t, 0, "waiting to join")
		stop(t, c)
	})
}

// A commit that was refused while a lane drained ended the membership. The lane's last commit left
// it out, and the log said nothing: its records ran again.
func TestConsumer_TellsThatItsLastCommitLeftLanesOut(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var busy [2]atomic.Bool
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if busy[r.Partition].CompareAndSwap(false, true) {
				return takes(ctx, 40*time.Second)
			}
			return takes(ctx, 30*time.Second)
		})
		cfg.DrainTimeout = 50 * time.Second
		log := logged(&cfg)
		first := k.Run(cfg)
		k.Produce(many(20)...)
		eventually(t, "handlers run in both lanes", func() bool { return busy[0].Load() && busy[1].Load() })
		second := k.Begin(config(fine))
		eventually(t, "a lane drains", func() bool { return log.with("siding: lanes drain") > 0 })
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: 1, Err: kerr.IllegalGeneration})
		eventually(t, "a commit is refused", func() bool { return log.with("offsets not committed", "ILLEGAL_GENERATION") > 0 })
		stop(t, first)
		stop(t, second)
		log.has(t, 1, "level=WARN", "handed over without their last commit", "the membership under which the member owned them has ended")
	})
}

// A member that was expelled lost lanes without a line: their records ran again.
func TestConsumer_TellsThatItLostLanesBeforeTheyWereRevoked(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var handled atomic.Int32
		cfg := config(func(context.Context, *kgo.Record) error {
			handled.Add(1)
			return nil
		})
		cfg.Kafka = balancers["eager"]
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: 1, Err: kerr.IllegalGeneration})
		k.Produce(many(3)...)
		eventually(t, "they ran again", func() bool { return handled.Load() == 6 })
		stop(t, c)
		log.has(t, 1, "level=WARN", "siding: the membership was lost", "lanes=1 ", "partitions=orders/0")
	})
}

// A lane that is lost while it drains is not handed over as well.
func TestConsumer_TellsOfALaneThatIsLostWhileItDrainsOnce(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		busy := make(chan struct{})
		cfg := config(func(ctx context.Context, _ *kgo.Record) error {
			close(busy)
			return takes(ctx, 40*time.Second)
		})
		cfg.Kafka = balancers["KIP-848"]
		cfg.DrainTimeout = 50 * time.Second
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Produce(many(1)...)
		<-busy
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ConsumerGroupHeartbeat}, TopLevel: true, Count: -1, Err: kerr.UnknownMemberID})
		stop(t, c)
		log.has(t, 1, "siding: lanes drain", `why="Run ends"`)
		log.has(t, 1, "siding: the membership was lost", "lanes=1 ")
		log.has(t, 0, "siding: lanes revoked")
	})
}

// A shutdown that cancelled handlers did not say so.
func TestConsumer_TellsHowManyHandlersItCancelled(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var began atomic.Int64
		cfg := config(func(ctx context.Context, _ *kgo.Record) error {
			began.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		cfg.DrainTimeout = time.Second
		cfg.Policy.HandlerTimeout = time.Hour
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Produce(append(onPartition(0, "v", 1), onPartition(1, "v", 1)...)...)
		eventually(t, "both run", func() bool { return began.Load() == 2 })
		stop(t, c)
		log.has(t, 1, `msg="siding: lanes revoked"`, "cancelled=2 ")
		log.has(t, 1, `msg="siding: stopped"`, "handled=0 copies_parked=0 dead_lettered=0 discarded=0 cancelled=2")
	})
}

// A line with the partitions of a large assignment was as long as the assignment.
func TestConsumer_NamesFewPartitions(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(fine)
		cfg.Topics = nil
		for i := range 25 {
			name := "topic-" + strconv.Itoa(10+i)
			k.CreateTopic(name, 1)
			cfg.Topics = append(cfg.Topics, name)
		}
		log := logged(&cfg)
		stop(t, k.Run(cfg))
		log.has(t, 3, `partitions="topic-10/0 topic-11/0 `, `topic-19/0 and 15 more"`, "lanes=25")
	})
}

// The page says what each line means and what to do about it.
func TestConsumer_LogIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Log\n")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (info|warn|error) \\| `([^`]+)`").FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	written := logTexts(t)
	slices.Sort(documented)
	slices.Sort(written)
	written = slices.Compact(written)
	if len(written) < 40 {
		t.Errorf("the code writes %d texts only: %q", len(written), written)
	}
	for _, text := range written {
		if !slices.Contains(documented, text) {
			t.Errorf("the code writes it, and no table has it: %s", text)
		}
	}
	for _, text := range documented {
		if !slices.Contains(written, text) {
			t.Errorf("a table has it, and no code writes it: %s", text)
		}
	}
}

// logTexts returns the lines that the code of the consumer writes, as "level text". Of a text that
// is put together it returns the constant beginning, and of those about a storm the first.
func logTexts(t *testing.T) (texts []string) {
	text := func(e ast.Expr) string {
		for sum, ok := e.(*ast.BinaryExpr); ok; sum, ok = e.(*ast.BinaryExpr) {
			e = sum.X
		}
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return ""
		}
		s, _ := strconv.Unquote(lit.Value)
		s, ours := strings.CutPrefix(s, "siding: ")
		if !ours {
			return ""
		}
		return strings.TrimSpace(s)
	}
	add := func(level string, e ast.Expr) {
		if s := text(e); s != "" && (level == "info" || level == "warn" || level == "error") {
			texts = append(texts, level+" "+s)
		}
	}
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 {
				add(strings.ToLower(f.Sel.Name), n.Args[0])
			}
		case *ast.CompositeLit: // of a recordEvent
			if name, ok := n.Type.(*ast.Ident); ok && name.Name == "recordEvent" {
				level := n.Elts[0].(*ast.SelectorExpr).Sel.Name
				add(strings.ToLower(strings.TrimPrefix(level, "Level")), n.Elts[1])
			}
		}
		return true
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			ast.Inspect(file, visit)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
