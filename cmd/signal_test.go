package cmd

import "syscall"

const termSignal = syscall.SIGTERM
