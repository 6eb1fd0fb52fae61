package forward

// effort says which client writes a copy. It rises while the topic refuses the copy for its size.
type effort uint8

const (
	batched effort = iota // with other copies, by the user's codec
	alone                 // in a batch of its own by a strong codec: its batch was too large
	tight                 // the same by the strongest codec: it was too large alone
	efforts
)
