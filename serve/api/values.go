package api

// Values counts open letters by a header, or a member of their values.
type Values struct {
	By      string `json:"by" doc:"The field."`
	Counted int64  `json:"counted" doc:"Letters that were counted."`
	// Complete is false if a bound ended the reading.
	Complete bool         `json:"complete" doc:"All letters that the filter selects were counted. The work for an answer is bounded: if not, these are the newest."`
	Top      []ValueCount `json:"top" doc:"The ten values of the most letters."`
	Others   int64        `json:"others" doc:"Letters with other values."`
	Without  int64        `json:"without" doc:"Letters without a value."`
	Hidden   int64        `json:"hidden" doc:"Letters whose value the server's configuration hides."`
	Values   int          `json:"values" doc:"Different values."`
	Exact    bool         `json:"exact" doc:"The counts are exact. Otherwise there were more than 10,000 values."`
	Problem  string       `json:"problem,omitempty" doc:"On how many letters where failed, and the first of them. They are not selected."`
}

// ValueCount is the number of letters with one value.
type ValueCount struct {
	Value   string `json:"value" doc:"The value: what is no text as JSON, what is no UTF-8 in hex, and at most 256 bytes."`
	Open    int64  `json:"open" doc:"Letters; if the counts are not exact, at most so many."`
	AtLeast int64  `json:"atLeast" doc:"Letters that are certain."`
}
