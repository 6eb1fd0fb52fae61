package yamlfile

// nearest returns the name that the author meant, as far as one can know: the one with the fewest
// letters to change, at most a third of them. It is empty if there is none.
func nearest(typed string, names []string) (best string) {
	least := max(1, len(typed)/3) + 1
	for _, name := range names {
		if d := distance(typed, name); d < least {
			least, best = d, name
		}
	}
	return best
}

// distance is how many letters have to be changed, added, taken away, or exchanged with their
// neighbour to make b of a: the optimal string alignment distance.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
