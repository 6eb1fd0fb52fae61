// Package patient writes answers that come in parts to clients that may be slow.
package patient
