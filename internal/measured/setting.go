package measured

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// Setting describes the brokers of a measurement and the machine of its clients, which who names;
// the brokers may be elsewhere.
func Setting(ctx context.Context, brokers []string, who string) (string, error) {
	cl, err := client.New(kgo.SeedBrokers(brokers...))
	if err != nil {
		return "", err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	versions, err := kadm.NewClient(cl).ApiVersions(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the brokers' version: %w", err)
	}
	found := map[string]bool{}
	for _, v := range versions {
		if v.Err != nil {
			return "", fmt.Errorf("asking broker %d for its version: %w", v.NodeID, v.Err)
		}
		found[strings.TrimPrefix(v.VersionGuess(), "v")] = true
	}
	return fmt.Sprintf("%d broker(s) with the API of Kafka %s; %s on %s", len(versions), strings.Join(slices.Sorted(maps.Keys(found)), " and "), who, machine()), nil
}

// machine describes the clients' machine.
func machine() string {
	memory := ""
	if kib, err := strconv.ParseInt(strings.TrimSuffix(fromProc("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		memory = fmt.Sprintf(", %.1f GiB of memory", float64(kib)/(1<<20))
	}
	return fmt.Sprintf("%d CPUs (%s)%s, %s, %s", runtime.NumCPU(), cmp.Or(fromProc("/proc/cpuinfo", "model name"), runtime.GOARCH), memory, runtime.GOOS, runtime.Version())
}

// fromProc returns the first value of a key, and nothing where there is no such file: it is
// Linux's, and does not have each key on every kind of CPU.
func fromProc(file, key string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if k, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
