// Package guesthttp is net/http inside a module: requests leave through the host.
package guesthttp
