// Talkops is a terminal AI agent for DevOps people whose commands and file edits
// can happen in a disposable remote machine.
package main

import (
	"os"

	"github.com/talkops-ai/talkops/cmd"
)

func main() { os.Exit(cmd.Main()) }
