// Package access says who sends a request, and what they may do: by bearer tokens, by tokens of an
// OpenID provider, or by the header of a proxy.
package access
