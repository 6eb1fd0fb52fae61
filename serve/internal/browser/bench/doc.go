// Command bench measures a server with a million letters, also in a Chromium. It measures how long
// the first page takes at the server, and in a Chromium until a user can work with it. It measures
// the memory of the process at most, and whether that grows, also while it reads letters with
// values of 900 KB. And it measures the cost of a hundred viewers while nothing happens. `make
// bench ONLY=serve` runs it, and fails if a goal is missed.
//
// The server is a process of its own, so neither the broker nor the viewers are in its figures. The
// broker is the embedded one. Memory and CPU come from Linux's /proc.
package main
