//go:build !unix

package wasm

func private(string) error { return nil }
