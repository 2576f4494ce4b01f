//go:build race

package wasmtest

// Raced says that the race detector is on. Preparing a large module takes minutes
// with it.
const Raced = true
