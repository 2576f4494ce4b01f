//go:build !unix

package runlooptest

// kill does nothing: a machine starts no process here.
func kill(int, bool) {}
