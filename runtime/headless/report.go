package headless

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/talkops-ai/talkops/runtime/term"
)

// JUnit writes r as JUnit XML, which CI systems show as tests: the run is one,
// and each criterion of its rubric.
func (r Result) JUnit(w io.Writer) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	type suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testcase `xml:"testcase"`
		Out      string     `xml:"system-out"`
	}
	s := suite{Name: "talkops", Out: xmlText(r.Answer)}
	run := testcase{Class: "talkops", Name: "run"}
	if r.Code != 0 {
		run.Failure = &failure{Message: fmt.Sprintf("%s (exit %d)", r.Reason, r.Code), Text: xmlText(strings.Join(r.Errors, "\n"))}
	}
	s.Cases = append(s.Cases, run)
	if r.Rubric != nil {
		for _, c := range r.Rubric.Criteria {
			t := testcase{Class: "talkops.rubric", Name: xmlText(c.Name)}
			if !c.Passed {
				t.Failure = &failure{Message: xmlText(c.Gap)}
			}
			s.Cases = append(s.Cases, t)
		}
	}
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// xmlText is text that XML can hold and a terminal cannot be driven by.
func xmlText(text string) string { return term.Neutral(term.Clean(text)) }

// Summary writes r as Markdown for the page of a CI job.
func (r Result) Summary(w io.Writer) error {
	var b strings.Builder
	mark := "passed"
	if r.Code != 0 {
		mark = "failed"
	}
	fmt.Fprintf(&b, "### talkops: %s – %s (exit %d)\n\n", mark, r.Reason, r.Code)
	if r.Rubric != nil {
		fmt.Fprintf(&b, "Rubric: **%s** after %d %s\n\n| | Criterion | Missing |\n|---|---|---|\n", r.Rubric.Status, r.Rubric.Gradings, plural(r.Rubric.Gradings, "grading"))
		for _, c := range r.Rubric.Criteria {
			state := "open"
			if c.Passed {
				state = "passed"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", state, cell(c.Name), cell(c.Gap))
		}
		b.WriteString("\n")
	}
	if answer := strings.TrimSpace(term.Clean(r.Answer)); answer != "" {
		b.WriteString("<details><summary>Answer</summary>\n\n" + quoted(answer) + "\n\n</details>\n\n")
	}
	for _, refused := range r.Refused {
		fmt.Fprintf(&b, "- not allowed: %s %s – %s\n", refused.Tool, cell(refused.Says()), cell(refused.Reason))
		if refused.Change != nil {
			fmt.Fprintf(&b, "  %s\n", cell(refused.Change.String()))
		}
	}
	for _, text := range r.Errors {
		fmt.Fprintf(&b, "- %s\n", cell(text))
	}
	fmt.Fprintf(&b, "\n%d %s, %s\n", r.Turns, plural(r.Turns, "turn"), r.cost())
	_, err := io.WriteString(w, b.String())
	return err
}

// cell is text for one cell of a Markdown table, with nothing in it that would
// be markup.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "\n", " ").Replace(oneLine(text, 300))
}

// quoted is a Markdown quotation of text that is not to be trusted.
func quoted(text string) string {
	text = strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text)
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}
