package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/talkops-ai/talkops/runtime/agent"
	"github.com/talkops-ai/talkops/runtime/config"
	"github.com/talkops-ai/talkops/runtime/model"
	"github.com/talkops-ai/talkops/runtime/registry"
	"github.com/talkops-ai/talkops/runtime/rubric"
	"github.com/talkops-ai/talkops/runtime/session"
	"github.com/talkops-ai/talkops/runtime/workspace"
	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// Exit statuses. 130, 143 and 129 are signals; `talkops sandbox exec` passes on
// its command's own status.
const (
	exitOK        = 0
	exitError     = 1
	exitUsage     = 2
	exitRubric    = 3
	exitRefused   = 4
	exitSandbox   = 5
	exitExport    = 6
	exitBudget    = 7
	exitTurns     = 8
	exitUntrusted = 9
	exitTimeout   = 124
	exitExec      = 125
)

// An exitStatus ends talkops with a status when everything has been said.
type exitStatus struct{ status int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// A usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// classify gives the exit status of an error and one word for it.
func classify(err error) (int, string) {
	_, isSignal := errors.AsType[*signalError](err)
	_, isUsage := errors.AsType[*usageError](err)
	_, isConfig := errors.AsType[*config.Error](err)
	_, isSetup := errors.AsType[*registry.SetupError](err)
	_, isSize := errors.AsType[*workspace.SizeError](err)
	_, isUntrusted := errors.AsType[*untrustedError](err)
	_, isStart := errors.AsType[*session.StartError](err)
	_, isUnsaved := errors.AsType[*session.UnsavedError](err)
	_, isExport := errors.AsType[*exportError](err)
	switch {
	case err == nil:
		return exitOK, "done"
	case isSignal:
		s, _ := errors.AsType[*signalError](err)
		return 128 + int(s.signal), "interrupted"
	case isUntrusted:
		return exitUntrusted, "untrusted_project"
	case isUsage, isConfig, isSetup, isSize,
		errors.Is(err, model.ErrNoModel), errors.Is(err, model.ErrUnknownProvider), errors.Is(err, model.ErrNoKey):
		return exitUsage, "usage"
	case errors.Is(err, errRunTimeout):
		return exitTimeout, "timeout"
	case isStart:
		return exitSandbox, "sandbox"
	case errors.Is(err, agent.ErrBudget):
		return exitBudget, "budget"
	case errors.Is(err, agent.ErrTurns):
		return exitTurns, "turn_limit"
	case errors.Is(err, rubric.ErrUnmet):
		return exitRubric, "rubric_not_met"
	case errors.Is(err, rubric.ErrGrader):
		return exitError, "grader_error"
	case errors.Is(err, agent.ErrRefused), errors.Is(err, errNeedsPerson):
		return exitRefused, "permission_needed"
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, sandbox.ErrUnauthenticated):
		return exitSandbox, "sandbox_lost"
	case isUnsaved, isExport:
		return exitExport, "export"
	}
	return exitError, "error"
}

// explain gives the exit status of an error and the lines to print: what
// happened, and what to do.
func explain(err error) (int, []string) {
	if err == nil {
		return exitOK, nil
	}
	if e, ok := errors.AsType[*exitStatus](err); ok {
		return e.status, nil
	}
	status, _ := classify(err)
	if f, ok := errors.AsType[*fs.PathError](err); ok && status == exitError && f.Path == os.Stdout.Name() && errors.Is(f, syscall.EPIPE) {
		return 128 + int(syscall.SIGPIPE), nil // who reads has seen enough, as with any program
	}
	return status, tell(err, status)
}

// tell is what explain prints of an error that ends talkops with status.
func tell(err error, status int) []string {
	lines := []string{fmt.Sprintf("%v (exit %d)", err, status)}
	if e, ok := errors.AsType[*session.StartError](err); ok {
		for _, l := range e.Last {
			lines = append(lines, "| "+l)
		}
	}
	if advice := advise(err); advice != "" {
		lines = append(lines, advice)
	}
	return lines
}

// advise says what to do about an error, where that is not in its text.
func advise(err error) string {
	_, isStart := errors.AsType[*session.StartError](err)
	untrusted, isUntrusted := errors.AsType[*untrustedError](err)
	_, isSetup := errors.AsType[*registry.SetupError](err)
	switch {
	case isUntrusted && untrusted.module != "":
		return "Look at the module and allow it: talkops provider add " + untrusted.module
	case isUntrusted && untrusted.broken != nil:
		return "Repair the file, or add --ignore-project-config to leave it out."
	case isUntrusted && len(untrusted.changed) > 0:
		return "See what changed, and approve it: talkops trust add. Or add --trust-project to use it for this run, or --ignore-project-config to leave it out."
	case isUntrusted:
		return "Review and approve it: talkops trust add. Or add --trust-project to use it for this run, or --ignore-project-config to leave it out."
	case isSetup:
		return "Nothing was started."
	case isStart && errors.Is(err, sandbox.ErrUnauthenticated):
		return "The vendor refused the key. Nothing ran on this computer. See: talkops provider list"
	case isStart && errors.Is(err, sandbox.ErrNotFound):
		return "Nothing ran on this computer and no other sandbox was made."
	case isStart:
		return "Nothing ran on this computer."
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "A disk of this computer is full, or your share of it. Make room and do it again; work that did not come home: talkops sandbox rescue. To remove saved work that is not needed: talkops sandbox prune --discard."
	case sandbox.CodeOf(err) == sandbox.CodeNoSpace:
		return "A disk of the sandbox is full. If there is work in it, make room first: talkops sandbox exec --sandbox NAME --sandbox-id ID -- rm FILE"
	case errors.Is(err, agent.ErrTurns):
		return "Allow more with --max-turns N."
	case errors.Is(err, agent.ErrBudget):
		return "Allow more with --max-cost-usd X."
	case errors.Is(err, rubric.ErrGrader):
		return "The work was not judged; it counts as not passed."
	case errors.Is(err, model.ErrAuth):
		return "Check the key; choose another model with --model provider:name."
	case errors.Is(err, sandbox.ErrGone):
		return "The sandbox ended while it was in use. Nothing ran on this computer instead."
	case errors.Is(err, errRunTimeout):
		return "Give it more time with --timeout."
	}
	return ""
}
