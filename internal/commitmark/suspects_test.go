package commitmark

import "testing"

func TestParseSuspects_AsEvidenceIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Suspects{
		"siding 1 f=2s p=1 u=80":                        {},
		"siding 1 f=2s p=1 u=80 n=1 s=64 b=CA":          {Deaths: 1, Below: 164},
		"siding 1 f=2s p=1 n=2 s=64 g=AAUFAg":           {Deaths: 2, Below: 164, Isolated: true},
		"siding 1 f=2s p=1 n=2 s=64 g=AAU x=3":          {Deaths: 2, Below: 164, Isolated: true},
		"siding 1 f=2s p=1 n=3 s=64 c=3d c=5":           {Deaths: 3, Below: 164, Isolated: true, Condemned: 2},
		"siding 1 f=2s n=2":                             {},
		"siding 1 f=2s n=-2 s=64":                       {},
		"siding 1 f=2s n=2 s=9223372036854775807":       {},
		"siding 1 f=2t n=2 s=64":                        {}, // of another offset
		"siding 1 f=2s n=99999999999 s=64":              {},
		"another 1 f=2s n=2 s=64":                       {},
		"siding 1 f=2s n=2 s=64 k=whatever comes later": {Deaths: 2, Below: 164},
	} {
		if got := ParseSuspects(text, 100); got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
}
