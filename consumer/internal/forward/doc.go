// Package forward writes copies of records to siblings, and says when they are safe.
//
// [Producers] give each copy the client that writes it, and replace a client that brokers refuse for
// good. [BatchLimits] know how large a batch each sibling takes. The package knows nothing of groups,
// commits and handlers.
package forward
