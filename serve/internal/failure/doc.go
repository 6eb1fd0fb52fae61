// Package failure turns errors into problems of the API: their kinds, and their texts.
package failure
