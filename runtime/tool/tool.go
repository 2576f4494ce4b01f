// Package tool has the tools a model can call: ls, read_file, write_file,
// edit_file, delete, glob, grep and execute. Each is written once over a
// sandbox.Sandbox and needs no more in it than a POSIX shell and utilities.
package tool

import (
	"cmp"
	"context"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Tool is one thing a model can do. It is safe for concurrent use.
type Tool interface {
	Name() string
	Description() string        // what the model is told, Markdown
	Parameters() map[string]any // JSON Schema of one object

	// Plan says what a call with this input would do, for approval, without
	// doing it. Input that is malformed is an error with a code.
	Plan(input string) (Plan, error)

	// Run does it. A failure of the tool is a Result that the model can act on;
	// the error is for what ends the run: the sandbox is gone, ctx has ended.
	Run(ctx context.Context, input string, emit func(Output)) (Result, error)
}

// A Plan is what a call would do.
type Plan struct {
	Effect  Effect
	Command string // execute
	Path    string // the tools that work on files, and where a command runs; absolute
	Apart   bool   // a command runs in another directory than commands do by themselves
	URL     string // those that leave: where to
	Query   string // web_search: the words that leave
	Subject string // what it is about, where none of these says it: grep and glob
}

// Says is what a call is about in a few words, for every face alike. It is as the
// model has it: who shows it cleans it.
func (p Plan) Says() string { return cmp.Or(p.Subject, p.Command, p.Path, p.Query, p.URL) }

// Effect is what a call does to the place it runs in.
type Effect string

// The effects.
const (
	Reads  Effect = "reads"  // looks at files
	Writes Effect = "writes" // changes files
	Runs   Effect = "runs"   // runs a command
	Leaves Effect = "leaves" // acts from the user's computer, wherever the others work, and reaches out from it
)

// An Output is a piece of a running command's output.
type Output struct {
	Stderr bool
	Data   []byte
}

// A Result is what the model is told.
type Result struct {
	Text  string
	Code  sandbox.Code // "" when it went well
	Exit  int          // execute: the command's status
	Media []byte       // read_file of an image
	Type  string       // media type of Media
}
