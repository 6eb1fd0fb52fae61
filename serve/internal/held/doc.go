// Package held knows which consumer groups hold records of topics back, or run them in a strain, as
// their commits last said.
package held
