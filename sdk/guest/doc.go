// Package guest makes a WebAssembly module of a provider that is written against
// sdk/sandbox:
//
//	package main
//
//	import "github.com/talkops-ai/talkops/sdk/guest"
//
//	var _ = guest.Serve(acme{})
//
//	func main() {}
//
// It is built with Go alone:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w" -o acme.wasm .
//
// Every operation runs in a fresh instance, so a module remembers nothing: what it
// needs again to reach a sandbox it puts into Info.Token, and a [Resumer] makes
// the sandbox of it without asking the vendor. There are no sockets: requests go
// through [Do] and [Open], or for code that is written with net/http through
// sdk/guest/guesthttp. The value of a secret setting is a placeholder; the host
// puts the secret in its place where it stands in a header.
//
// A body can be made of [Part]s, with files of the caller in it as they are, in
// base64 or in a JSON string; [Dial] opens a WebSocket; Request.Sign has the host
// sign a request and [MAC] computes an HMAC, both with keys the module never sees;
// [Keep] and [Load] are a little state that lasts. What runs when the module starts,
// before an operation, has none of these.
//
// One goroutine runs at a time. Readers and writers that the caller handed over
// are handles: given to [Do] as From and To, their bytes never enter the module.
package guest
