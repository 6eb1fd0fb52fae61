package letterindex

// cut returns the beginning of a text, of n bytes at most, that is valid UTF-8.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
