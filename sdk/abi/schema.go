package abi

import _ "embed"

//go:embed schema.json
var schema string

// Schema is the JSON Schema of every message, and lists the exports with their
// requests and answers and the host functions with theirs. It is made of the types
// of this package.
func Schema() string { return schema }
