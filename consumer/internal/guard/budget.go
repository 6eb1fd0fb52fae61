package guard

import "time"

const (
	// atLeast is how many retries a second earns in any case, and saved how many of them may be
	// saved.
	atLeast = 1
	saved   = 10
)

// budget bounds the retries: runs of the source earn them, and each costs one. It is a bucket of
// tokens, as in Finagle and Linkerd. Retries that fail together may leave a debt.
type budget struct {
	each   float64 // what a run of the source earns
	tokens float64
	second time.Duration // whose runs are counted
	ran    int64
}

// source notes runs of source records.
func (b *budget) source(now time.Duration, n int64) {
	b.settle(now)
	b.ran += n
}

// settle adds what the seconds before earned.
func (b *budget) settle(now time.Duration) {
	now = now.Truncate(time.Second)
	if now <= b.second {
		return
	}
	b.tokens += max(b.each*float64(b.ran), atLeast)
	b.tokens += atLeast * float64((now-b.second)/time.Second-1)
	b.second, b.ran = now, 0
}

// has reports whether there is a retry left. What the measure's runs earn may be saved.
func (b *budget) has(now time.Duration, m *measure) bool {
	b.settle(now)
	runs, _, _, _ := m.sum(now)
	b.tokens = min(b.tokens, max(b.each*float64(runs), saved))
	return b.tokens >= 1
}
