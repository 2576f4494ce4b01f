// Package acme is the tutorial provider's source in every language it is written
// in, for who wants to begin with it.
package acme

import "embed"

// Source holds one folder for each language.
//
//go:embed go/main.go rust/*.rs c/*.c assemblyscript/*.ts assemblyscript/*.json zig/*.zig
var Source embed.FS
