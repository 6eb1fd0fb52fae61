// Package deptest holds the rules of who may import whom; it has tests only. It reads the source of the whole tree, the
// nested modules included, so a rule holds under any build tag.
package deptest
