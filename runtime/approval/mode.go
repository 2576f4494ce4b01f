package approval

import (
	"regexp"
	"slices"
	"strings"
)

// mode judges an option of the shell's own: some hand every variable to the programs
// that run, or put what was typed before into what is typed now. Letters are read
// where they stand for options.
func (c *command) mode(letters bool, w word, before string) {
	named := strings.HasSuffix(before, "o") || strings.HasSuffix(before, "s") || strings.HasSuffix(before, "O")
	if w.static && (letters && len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.Contains(w.text, "x") || strings.ToLower(w.text) == "xtrace") && c.traced != nil {
		*c.traced = true
	}
	switch name := strings.ToLower(strings.ReplaceAll(w.text, "_", "")); {
	case !w.static && (letters || named):
		c.find(TX, "sets an option of the shell that is not known")
	case w.static && len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && letters && strings.ContainsAny(w.text, "akH"),
		w.static && slices.Contains([]string{"allexport", "keyword", "history", "histexpand", "dotglob", "globdots", "cdablevars", "lastpipe"}, name):
		c.find(TX, "changes what programs are given, or what is typed")
	}
}

// zshGlob finds a pattern that runs a command on what it finds.
var zshGlob = regexp.MustCompile(`[\w*?\])./~}"'-]\([^)]*[e+][^)]*\)`)

// several reports whether a word may become several.
func several(w word) bool { return w.glob || w.many }
