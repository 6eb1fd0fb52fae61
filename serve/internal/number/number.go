// Package number writes numbers for people.
package number

import "strconv"

// Format returns a number with separators, as in "1,902".
func Format(n int64) string {
	text := strconv.FormatInt(n, 10)
	digits, sign := text, ""
	if n < 0 {
		sign, digits = "-", text[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Of returns a number with its noun, as in "1 letter" and "2,114 letters".
func Of(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Format(n) + " " + noun
}
