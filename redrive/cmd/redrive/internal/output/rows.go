package output

// Rows are a list within one thing: a field of [Screen.Object] that only JSON shows, as an array of
// objects, and [Screen.Tables] as a table of its own.
type Rows [][]Field

// RowsOf are the rows of several things, each with its fields.
func RowsOf[T any](things []T, fields func(T) []Field) Rows {
	rows := make(Rows, len(things))
	for i, thing := range things {
		rows[i] = fields(thing)
	}
	return rows
}

// MarshalJSON writes an array of objects.
func (r Rows) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, fields := range r {
		if i > 0 {
			b = append(b, ',')
		}
		row, err := JSONObject(fields...)
		if err != nil {
			return nil, err
		}
		b = append(b, row...)
	}
	return append(b, ']'), nil
}
