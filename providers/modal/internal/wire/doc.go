// Package wire is the part of Modal's gRPC protocol that talkops speaks: the
// control plane and the command router, with the field numbers of Modal's client
// 0.11.1. Fields that nobody here reads or writes are left out.
package wire

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative modal_client.proto modal_router.proto
