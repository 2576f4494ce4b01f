package agent

import (
	_ "embed" // system.md
	"strings"
	"text/template"
)

//go:embed system.md
var systemText string

// Facts are what the system prompt says of a session.
type Facts struct {
	Provider     string // "daytona"
	ID           string // of the machine
	Dir          string // the working directory, as the tools see it
	Host         bool   // the tools run on this computer
	Disposable   bool   // the machine ends with the session
	Project      string // a name or one line; may be empty
	Date         string // "2 January 2026"; may be empty
	Unattended   bool   // nobody can be asked
	Instructions string // the project's own, such as AGENTS.md; may be empty
}

// System returns the system prompt for a session.
func System(f Facts) string {
	var b strings.Builder
	t := template.Must(template.New("system").Parse(systemText))
	if err := t.Execute(&b, f); err != nil {
		panic(err) // the template and Facts are both in this package
	}
	return strings.TrimSpace(b.String()) + "\n"
}
