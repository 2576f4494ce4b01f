package workspace

import (
	"bytes"
	"fmt"
	"strings"
)

// lineEnds are the files among the changes whose lines git keeps with LF alone in
// the repository, whatever they end in on this computer: as core.autocrlf and the
// attributes of the project say. listed is what the last commit has.
func (h *Home) lineEnds(g *plumbing, listed map[string]object, changes []Change) (map[string]bool, error) {
	var names bytes.Buffer
	for _, c := range changes {
		if c.Now != nil && c.Now.Kind == File {
			fmt.Fprintf(&names, "%s\x00", c.Name)
		}
	}
	normal := map[string]bool{}
	if names.Len() == 0 {
		return normal, nil
	}
	auto, _ := g.run(nil, "config", "core.autocrlf") // 1: it is not set
	out, err := g.run(&names, "check-attr", "-z", "--stdin", "text", "eol")
	if err != nil {
		return nil, err
	}
	attributes := map[string]map[string]string{}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		if attributes[fields[0]] == nil {
			attributes[fields[0]] = map[string]string{}
		}
		attributes[fields[0]][fields[1]] = fields[2]
	}
	for _, c := range changes {
		if c.Now == nil || c.Now.Kind != File {
			continue
		}
		text, eol := attributes[c.Name]["text"], attributes[c.Name]["eol"]
		switch {
		case text == "unset":
		case text == "set", text != "auto" && (eol == "lf" || eol == "crlf"):
			normal[c.Name] = true
		case text == "auto", auto == "true", auto == "input":
			// What is in the repository with CR stays so.
			id := ""
			if c.Was != nil && c.Was.Kind == File {
				id, _ = h.blobID(c.Was, len(listed[c.Name].id)) // "" where what was sent is not here
			}
			normal[c.Name] = id == "" || id != listed[c.Name].id
		}
	}
	return normal, nil
}

// withoutCR is the content of a text with lines that end in LF; nil if that makes
// no difference, or it is no text.
func (h *Home) withoutCR(e *Entry) ([]byte, error) {
	data, isText, err := h.text(e)
	if err != nil || !isText {
		return nil, err
	}
	lf := bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if len(lf) == len(data) || bytes.IndexByte(lf, '\r') >= 0 {
		return nil, nil
	}
	return lf, nil
}
