// Package measured says what the figures of a measurement hold for, its brokers and its machine,
// and puts them into a page.
package measured
