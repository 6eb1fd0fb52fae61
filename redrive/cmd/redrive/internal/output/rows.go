package output

import "io"

// Rows are a list within one thing: a field of [Screen.Object] that only JSON shows, as an array of
// objects, and [Screen.Tables] as a table of its own.
type Rows [][]Field

// MarshalJSON writes an array of objects.
func (r Rows) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, fields := range r {
		if i > 0 {
			b = append(b, ',')
		}
		row, err := object(fields)
		if err != nil {
			return nil, err
		}
		b = append(b, row...)
	}
	return append(b, ']'), nil
}

// Tables writes lists below an [Screen.Object], each behind an empty line: those with rows, where
// the format is Table. JSON has them within the object.
func (s *Screen) Tables(all ...Rows) error {
	for _, rows := range all {
		if s.Format != Table || len(rows) == 0 {
			continue
		}
		if _, err := io.WriteString(s.Data(), "\n"); err != nil {
			return err
		}
		list := s.List()
		for _, fields := range rows {
			if err := list.Row(fields...); err != nil {
				return err
			}
		}
		if err := list.Close(); err != nil {
			return err
		}
	}
	return nil
}
