package output

import (
	"fmt"
	"strings"
)

// Bar shows a part of a whole, for a status line: "[#####.....] 50%". A whole of zero is complete.
func Bar(part, whole int64) string {
	const cells = 20
	share := 1.0
	if whole > 0 {
		share = min(max(float64(part)/float64(whole), 0), 1)
	}
	full := int(share * cells)
	return fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("#", full), strings.Repeat(".", cells-full), int(share*100))
}
