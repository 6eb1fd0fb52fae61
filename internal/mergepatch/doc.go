// Package mergepatch lays JSON merge patches, RFC 7396, over JSON. It works on the text: what a patch does not name is
// kept as it stands, numbers digit by digit and strings with their escapes, in its order.
package mergepatch
