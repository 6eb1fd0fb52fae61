package output

// A Tone is how an operator should take a text. A screen with colour paints it; the text itself
// means the same, for screens and people without colour.
type Tone string

// The tones, as codes of ECMA-48 (SGR). The zero Tone is plain.
const (
	Heading Tone = "1"
	Good    Tone = "32"
	Caution Tone = "33"
	Bad     Tone = "31"
	Busy    Tone = "36"
)

// Colour is when a screen paints.
type Colour string

const (
	// Auto paints in a terminal, unless NO_COLOR has a value (see no-color.org) or TERM is dumb.
	Auto Colour = "auto"
	// Always paints whatever the stream is, as for a pager.
	Always Colour = "always"
	// Never paints nothing.
	Never Colour = "never"
)

// Colours lists them, for help and completion.
var Colours = []string{string(Auto), string(Always), string(Never)}

// SetColour sets when the screen paints. It must be called before anything is written.
func (s *Screen) SetColour(c Colour) {
	auto := c == Auto && s.env("NO_COLOR") == "" && s.env("TERM") != "dumb"
	s.dataColours = palette{c == Always || auto && isTerminal(s.data)}
	s.wordsColours = palette{c == Always || auto && isTerminal(s.words)}
}

// A palette paints, or leaves text as it is.
type palette struct{ on bool }

func (p palette) paint(tone Tone, s string) string {
	if !p.on || tone == "" {
		return s
	}
	return "\x1b[" + string(tone) + "m" + s + "\x1b[0m"
}
