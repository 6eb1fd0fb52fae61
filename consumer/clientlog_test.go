package consumer

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
)

// Each client dials a restarting broker several times a second, and kgo logs a line each time:
// 5,996 in nine minutes were seen.
func TestClientLog_ThrottlesUnreachableBrokers(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
		f := &clientFactory{warnings: newClientWarnings(logger), cfg: &Config{Logger: logger, Kafka: []kgo.Opt{kgo.SeedBrokers("localhost:1")}}}
		var clients []kgo.Logger
		for range 4 {
			cl, err := kgo.NewClient(f.options(nil, nil)...)
			if err != nil {
				t.Fatal(err)
			}
			clients = append(clients, cl.OptValue(kgo.WithLogger).(kgo.Logger))
			cl.Close()
		}
		for i := range 6000 {
			for broker := range 2 {
				clients[i%4].Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", "kafka:9092", "broker", fmt.Sprint(broker),
					"err", fmt.Errorf("dial tcp 10.0.0.1:%d: connection refused", 40_000+i))
			}
			time.Sleep(90 * time.Millisecond)
		}
		clients[0].Log(kgo.LogLevelError, "something else", "broker", "1")
		time.Sleep(time.Minute) // no message comes that could bring the rest with it
		synctest.Wait()
		logged := 0
		for line := range strings.Lines(out.String()) {
			n := 1
			if _, lines, ok := strings.Cut(line, " lines="); ok {
				if _, err := fmt.Sscan(lines, &n); err != nil {
					t.Errorf("%q has no number of lines: %v", line, err)
				}
			}
			if strings.Contains(line, "broker=1") && strings.Contains(line, `msg="unable`) {
				logged += n
			}
		}
		// Nine minutes have 54 times ten seconds.
		if n := strings.Count(out.String(), `msg="unable to open`); n < 2*50 || n > 2*56 {
			t.Errorf("%d lines about two brokers in nine minutes, want one in ten seconds about each", n)
		}
		if logged != 6000 {
			t.Errorf("the lines about one stand for %d, want all of the 6,000", logged)
		}
		if want := `msg="siding: a client's warning has ended" warning="unable to open connection to broker" broker=1 total=6000`; !strings.Contains(out.String(), want) {
			t.Errorf("no line has %s", want)
		}
		if !strings.Contains(out.String(), "something else") {
			t.Error("another message is not logged")
		}
		if l := (clientLog{kslog.New(logger), f.warnings}); l.Level() != kgo.LogLevelWarn {
			t.Errorf("level is %v", l.Level())
		}
	})
}
