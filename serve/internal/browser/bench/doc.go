// Command bench measures a server that has a million letters: how long the first page takes at the
// server, and in a Chromium until somebody can work with it; what the process has in memory at
// most, and whether that grows, also while it reads letters with values of 900 KB; and what a
// hundred viewers cost while nothing happens. `make bench ONLY=serve` runs it, and fails if a goal
// is missed.
//
// The server is a process of its own, so neither the broker nor the viewers are in its figures. The
// broker is the embedded one. Memory and CPU come from Linux's /proc.
package main
