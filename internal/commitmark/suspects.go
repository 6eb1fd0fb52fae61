package commitmark

import "strconv"

// Suspects are records that may have killed a process. Of the zero value there are none.
type Suspects struct {
	Deaths    int   // processes that died in a row
	Below     int64 // the offset below which the records lie
	Condemned int   // records that killed a process when they ran alone
	Isolated  bool  // they run in groups, or one by one
}

// ParseSuspects reads what the metadata of an offset says about records that may kill a process, as
// ParseLane reads its own.
func ParseSuspects(metadata string, offset int64) (s Suspects) {
	var below int64
	for name, value := range fields(metadata, offset) {
		switch name {
		case "n":
			if n, err := strconv.ParseUint(value, 10, 31); err == nil {
				s.Deaths = int(n)
			}
		case "s":
			if n, err := strconv.ParseUint(value, 10, 62); err == nil {
				below = int64(n)
			}
		case "c":
			s.Condemned++
			s.Isolated = true
		case "g", "x":
			s.Isolated = true
		}
	}
	if s.Deaths == 0 || below == 0 || offset < 0 || offset > 1<<62-below {
		return Suspects{}
	}
	s.Below = offset + below
	return s
}
