// Package guesthttp is net/http inside a module: requests leave through the host. A
// request whose body is a reader that the caller handed over, as it is, is sent
// without its bytes entering the module; [Transport.Carry] does the same for what is
// received.
package guesthttp
