//go:build !race

package cmd

// raced says that the race detector is on.
const raced = false
