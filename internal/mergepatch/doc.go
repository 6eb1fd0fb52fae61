// Package mergepatch applies JSON merge patches (RFC 7396) to JSON. It works on the text: members
// that a patch does not name keep their order and spelling, numbers digit by digit and strings with
// their escapes.
package mergepatch
