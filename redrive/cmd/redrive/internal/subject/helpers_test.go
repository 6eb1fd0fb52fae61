package subject_test

// readers are the verbs that take TOPIC and filters.
var readers = [][]string{{"summary"}, {"list"}, {"list", "--all"}, {"export"}, {"discard", "--why", "x", "--yes"}}
