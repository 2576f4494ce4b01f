//go:build !wasip1

package guest

import "embed"

// Kits holds the kits of the languages other than Go, one folder each.
//
//go:embed rust/*.rs c/*.h assemblyscript/*.ts zig/*.zig
var Kits embed.FS
