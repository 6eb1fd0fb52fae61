package consumers

// Unknown is a number that is not known.
const Unknown = -1

// sum adds numbers of which one may not be known.
func sum(a, b int64) int64 {
	if min(a, b) < 0 {
		return Unknown
	}
	return a + b
}
