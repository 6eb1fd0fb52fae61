// Package gather makes one call of several that come at about the same time.
package gather
