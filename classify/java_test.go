package classify

import "testing"

// A trace of Java has its place in another form: of its first line a place was made.
func TestPlace_UnderstandsJava(t *testing.T) {
	t.Parallel()
	for trace, want := range map[string]string{
		"com.x.E\n\tat com.x.Tax.rate(Tax.java:42)\n\tat com.x.Main.main(Main.java:1)\n":                   "Tax.rate, Tax.java:42",
		"com.x.E: card 4111\r\n\tat app//com.x.Tax$Inner.<init>(Tax.java:42)\r\n":                          "Tax$Inner.<init>, Tax.java:42",
		"com.x.W: x\n\tat com.x.W.w(W.java:1)\nCaused by: com.x.E: no\n\tat com.x.Tax.rate(Tax.java:42)\n": "Tax.rate, Tax.java:42",
		"Caused by: com.x.E: no\n\tat com.x.Tax.rate(Unknown Source)\n":                                    "",
		"com.x.E\n\tat com.x.Tax.rate": "",
		"com.x.E\n\tat 4111 1111(x)\n": "",
		"com.x.E\n":                    "",
	} {
		if got := Place(trace); got != want {
			t.Errorf("%q: %q, want %q", trace, got, want)
		}
	}
}
