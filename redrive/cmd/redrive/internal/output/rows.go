package output

// Rows are a list within one thing: a field of [Screen.Object] that only JSON shows, as an array of objects, and
// [Screen.Rows] as a table of its own.
type Rows struct {
	Columns []Column
	Cells   [][]any
}

// MarshalJSON writes an array of objects, their fields in the order of the columns.
func (r Rows) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, cells := range r.Cells {
		if i > 0 {
			b = append(b, ',')
		}
		row, err := object(r.Columns, cells)
		if err != nil {
			return nil, err
		}
		b = append(b, row...)
	}
	return append(b, ']'), nil
}

// Rows writes them as a list.
func (s *Screen) Rows(r Rows) error {
	list := s.List(r.Columns...)
	for _, cells := range r.Cells {
		if err := list.Row(cells...); err != nil {
			return err
		}
	}
	return list.Close()
}
