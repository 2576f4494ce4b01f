//go:build !unix

package hostfuncs

const nonblock = 0
