package approval

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A form is what a program, or one verb of it, may be given so that it only looks,
// or writes nothing but the files it names. All else is asked for: the table lists
// what is known, and nothing is guessed.
type form struct {
	options  map[string]value // by name with its dashes
	valued   []string         // options with a value, as split takes them
	operands []kind           // the last may stand for any number
	any      bool             // the last operand is any number of them
	words    bool             // options are whole words of one dash: "-json"
	first    bool             // options end before the first operand
	plain    bool             // no argument can be an option: echo
	names    bool             // files whose names are not written in the line may be given; each of its options looks, too
	apart    bool             // the same, where such a name cannot be taken for an option
	some     bool             // there must be an operand
	need     []string         // options of which one must be given
	bundle   bool             // the first word may be letters without a dash: tar
	whole    [][]string       // or these arguments and no others
	verbs    map[string]*form // by the first operand; a name ending in * is a beginning
}

// A value is what an option takes.
type value struct {
	kind     kind // "" is none
	optional bool // only in the same word
}

// A kind is what a word must be; in braces: one of these words.
type kind string

// The kinds of words.
const (
	anyText  kind = "text"    // it is printed, compared, or looked for
	aNumber  kind = "num"     // a number, a size, a time
	aName    kind = "name"    // of a resource: no file, no address
	aFile    kind = "file"    // its content may be shown
	anOutput kind = "out"     // a file that is written
	aPlace   kind = "look"    // a file of which no more than its name, place and size are shown
	aMode    kind = "mode"    // of chmod
	aFormat  kind = "fmt"     // of git; it must not check signatures
	aShape   kind = "shape"   // an output format of kubectl
	aLink    kind = "link"    // a name, or an address at GitHub or GitLab
	aDate    kind = "date"    // a format of date
	aPair    kind = "pair"    // two words
	aCommand kind = "cmd"     // a program and its arguments, judged by themselves
	anExec   kind = "run"     // the same, up to ; or +
	aChart   kind = "chart"   // a directory, or a name
	aPattern kind = "pattern" // what is searched for, if no option says it
	aFilter  kind = "jq"      // a program of jq
	aPackage kind = "pkg"     // a package, by its name alone
	aKey     kind = "key"     // of git's settings
	anAPI    kind = "api"     // what is asked of a forge
	aRegion  kind = "region"  // of AWS: it is part of an address
	theNames kind = "names"   // one after the other, as the value of an option
	aPath    kind = "path"    // a name that may begin with a slash
	aBucket  kind = "bucket"  // of S3
	aQueue   kind = "queue"   // of SQS
	anID     kind = "ids"     // of Azure
	aQuery   kind = "query"   // of AWS and Azure, written out
	aWord    kind = "word"    // of letters, digits and dashes: it becomes part of an address
	aVar     kind = "var"     // a variable, with no more than a number in its subscript
	aLocal   kind = "local"   // a variable of the line's own
	aSymbol  kind = "symbol"  // of Go, without a version
	aRepo    kind = "repo"    // of the forge, by its owner and its name
)

// forms is the table, read once.
var forms = sync.OnceValue(func() map[string]*form {
	all, macros := map[string]*form{}, map[string]string{}
	for _, table := range []string{shellForms, fileForms, textForms, systemForms, gitForms, clusterForms, cloudForms} {
		var line string
		for next := range strings.Lines(table + "\n.") {
			if next != "" && (next[0] == '\t' || next[0] == ' ') {
				line += next
				continue
			}
			if line = strings.TrimSpace(line); line != "" {
				declare(all, macros, line)
			}
			line = next
		}
	}
	all[":"] = all["true"]
	finish(all)
	return all
})

// finish lists for each form which options take a value, for split.
func finish(all map[string]*form) {
	for _, f := range all {
		f.valued = nil
		for name, v := range f.options {
			switch {
			case v.kind != "" && !v.optional:
				f.valued = append(f.valued, name)
			case v.optional && len(name) == 2:
				f.valued = append(f.valued, "?"+name)
			}
		}
		finish(f.verbs)
	}
}

// declare reads one line of the table.
func declare(all map[string]*form, macros map[string]string, line string) {
	if name, alone, is := strings.Cut(line, " = "); is && !strings.Contains(name, ":") {
		for _, n := range strings.Fields(name) {
			f := enter(all, []string{n})
			for args := range strings.SplitSeq(alone, "|") {
				f.whole = append(f.whole, strings.Fields(args))
			}
		}
		return
	}
	names, rest, _ := strings.Cut(line, ":")
	if strings.HasPrefix(names, "@") {
		macros[names] = rest
		return
	}
	tokens := expanded(macros, rest)
	for _, at := range paths(strings.Fields(names)) {
		enter(all, at).read(tokens)
	}
}

func expanded(macros map[string]string, rest string) []string {
	var all []string
	for _, t := range strings.Fields(rest) {
		if strings.HasPrefix(t, "@") {
			all = append(all, expanded(macros, macros[t])...)
		} else {
			all = append(all, t)
		}
	}
	return all
}

// paths lists what alternatives stand for: "gh pr,issue list" is two.
func paths(words []string) [][]string {
	all := [][]string{nil}
	for _, w := range words {
		var next [][]string
		for _, a := range all {
			for alt := range strings.SplitSeq(w, ",") {
				next = append(next, append(slices.Clone(a), alt))
			}
		}
		all = next
	}
	return all
}

func enter(all map[string]*form, at []string) *form {
	var f *form
	for i, name := range at {
		if all[name] == nil {
			all[name] = &form{options: map[string]value{}, verbs: map[string]*form{}}
		}
		f = all[name]
		if i+1 < len(at) {
			all = f.verbs
		}
	}
	return f
}

// read adds what the words of a line say: "-ab" letters, "-n=num" letters with a
// value, "-i?text" letters with one that may be joined, "--name", "--name=kind",
// "--name?kind", "+first" and its like, and the kinds of the operands.
func (f *form) read(tokens []string) {
	for _, t := range tokens {
		switch t {
		case "+words":
			f.words = true
			continue
		case "+first":
			f.first = true
			continue
		case "+some":
			f.some = true
			continue
		case "+plain":
			f.plain = true
			continue
		case "+bundle":
			f.bundle = true
			continue
		case "+names":
			f.names = true
			continue
		case "+apart":
			f.apart = true
			continue
		}
		if need, is := strings.CutPrefix(t, "+need:"); is {
			f.need = strings.Split(need, ",")
			continue
		}
		if !strings.HasPrefix(t, "-") {
			k, any := strings.CutSuffix(t, "*")
			f.operands, f.any = append(f.operands, kind(k)), any
			continue
		}
		name, v := t, value{}
		if i := strings.IndexAny(t, "=?"); i > 0 {
			name, v = t[:i], value{kind(t[i+1:]), t[i] == '?'}
		}
		if strings.HasPrefix(name, "--") || f.words {
			f.options[name] = v
			continue
		}
		for _, letter := range name[1:] {
			f.options["-"+string(letter)] = v
		}
	}
}

// verb is the form of a verb.
func (f *form) verb(name string) *form {
	if v := f.verbs[name]; v != nil {
		return v
	}
	for begin, v := range f.verbs {
		if b, is := strings.CutSuffix(begin, "*"); is && strings.HasPrefix(name, b) && len(name) > len(b) {
			return v
		}
	}
	return nil
}

// gate finds whatever of a command is in no form of the table. From is where its
// own findings begin.
func (c *command) gate(name string, args []word, from int) {
	f := forms()[name]
	if f == nil {
		// Said by itself where the program is not known at all.
		if !slices.ContainsFunc((*c.found)[from:], func(f Finding) bool { return f.verdict(onHost) != Allow }) {
			c.find(T3, unlisted, vague)
		}
		return
	}
	if f.fits(c, args) {
		return
	}
	for _, w := range args {
		if w.static && !strings.HasPrefix(w.text, "-") && f.shows() {
			c.read(w) // it may be a file
		}
	}
	c.find(T3, unlisted, vague)
}

const unlisted = "is not one of the forms that are known to only look"

// shows reports whether the program prints what is in files.
func (f *form) shows() bool { return slices.Contains(f.operands, aFile) }

// fits reports whether the arguments are as the form says. Files that they name are
// judged on the way.
func (f *form) fits(c *command, args []word) bool {
	for _, alone := range f.whole {
		if slices.Equal(texts(args), alone) {
			return true
		}
	}
	if len(f.whole) > 0 && f.operands == nil && len(f.options) == 0 && len(f.verbs) == 0 {
		return false
	}
	if len(args) == 1 && args[0].static && (args[0].text == "--version" || args[0].text == "--help") {
		return true
	}
	if f.bundle && len(args) > 0 && args[0].static && args[0].text != "" && args[0].text[0] != '-' {
		return f.bundled(c, args)
	}
	if f.plain {
		return f.names || !slices.ContainsFunc(args, word.open)
	}
	n, ended, o := 0, false, f.split(args)
	given := o.has("-e", "-f", "--regexp", "--file", "--files", "--expression") // as letters that are joined, too
	if len(f.need) > 0 && !o.has(f.need...) {
		return false
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !ended && a.static && a.text == "--" {
			ended = true
			continue
		}
		option := !ended && strings.HasPrefix(a.begins(), "-") && a.begins() != "-"
		switch {
		case option:
			took, ok := f.option(c, a, args[i+1:])
			if !ok {
				return false
			}
			i += took
			continue
		case !ended && !a.static && !a.found && !a.input && (a.many || a.begins() == ""):
			return false // it may be an option
		}
		if len(f.verbs) > 0 {
			v := f.verb(a.text)
			return a.static && v != nil && v.fits(c, args[i+1:])
		}
		if f.first {
			ended = true
		}
		k := f.operand(n)
		if k == aPattern {
			if k = anyText; given {
				k = aFile
			}
		}
		switch {
		case k == aCommand:
			return a.static && a.text != "" && a.text[0] != '+' || !a.static
		case a.open() && !f.takes(a, k, ended, n):
			return false
		case k == "", !k.fits(c, a), (a.glob || a.many) && !(f.any && n >= len(f.operands)-1):
			return false // or it may be several, of which one is something else
		}
		n++
	}
	return n > 0 || !f.some
}

// takes reports whether the program may be given a word that is not written in the
// line: the name of a file, as such, or text that it prints as it is.
func (f *form) takes(w word, k kind, ended bool, n int) bool {
	switch {
	case !f.names && !f.apart:
		return false
	case k == anyText:
		return f.first && n > 0 // after a format
	case k != aFile && k != aPlace:
		return false
	}
	return f.names || ended || !w.leads()
}

// open reports whether what the program is given is not what is written in the line: it
// is known when the line runs.
func (w word) open() bool { return (!w.static || w.glob) && !w.input }

// leads reports whether a word may begin with a dash when the line runs.
func (w word) leads() bool {
	begins := w.begins()
	return begins == "" || strings.ContainsAny(begins[:1], "*?[-")
}

// operand is the kind of the operand of that place.
func (f *form) operand(i int) kind {
	switch {
	case i < len(f.operands):
		return f.operands[i]
	case f.any:
		return f.operands[len(f.operands)-1]
	}
	return ""
}

// option judges one word of options, and says how many of the next it takes.
func (f *form) option(c *command, a word, next []word) (took int, ok bool) {
	known := a.begins()
	if strings.HasPrefix(known, "--") || f.words {
		name, joined, has := strings.Cut(known, "=")
		v, listed := f.options[name]
		switch {
		case !listed, !has && !a.static, has && v.kind == "":
			return 0, false
		case has:
			if w := a.rest(joined); w.static && w.glob && v.kind == anyText && f.names {
				return 0, true // it is this option whatever the pattern stands for
			}
			return 0, v.kind.value(c, a.rest(joined))
		}
		return v.take(c, next)
	}
	for k, letter := range known[1:] {
		v, listed := f.options["-"+string(letter)]
		if !listed && letter >= '0' && letter <= '9' {
			v, listed = f.options["-#"]
		}
		rest := known[1+k+len(string(letter)):]
		switch {
		case !listed:
			return 0, false
		case v.kind == "":
		case v.kind == anExec && len(known) > 2:
			return 0, false
		case rest != "" || !a.static:
			return 0, v.kind.value(c, a.rest(rest))
		default:
			return v.take(c, next)
		}
	}
	return 0, a.static
}

// take judges the value of an option that stands in the next words.
func (v value) take(c *command, next []word) (took int, ok bool) {
	switch {
	case v.kind == "" || v.optional:
		return 0, true
	case v.kind == anExec:
		end := slices.IndexFunc(next, func(w word) bool { return w.static && w.text == ";" })
		plus := slices.IndexFunc(next, func(w word) bool { return w.static && w.text == "+" })
		if end < 0 || plus >= 0 && plus < end {
			end = plus
		}
		if end < 0 {
			end = len(next) - 1 // of fd, to the end
		}
		return end + 1, true
	case v.kind == theNames:
		for took < len(next) && !strings.HasPrefix(next[took].begins(), "-") {
			if !aName.value(c, next[took]) {
				return 0, false
			}
			took++
		}
		return took, took > 0
	case v.kind == aPair:
		return 2, len(next) > 1 && anyText.value(c, next[0]) && anyText.value(c, next[1])
	}
	return 1, len(next) > 0 && v.kind.value(c, next[0])
}

// bundled judges letters without a dash, whose values follow in their order.
func (f *form) bundled(c *command, args []word) bool {
	var plain []word
	rest := args[1:]
	for _, letter := range args[0].text {
		v, listed := f.options["-"+string(letter)]
		if !listed || letter == '-' {
			return false
		}
		plain = append(plain, literal("-"+string(letter)))
		if v.kind != "" && !v.optional {
			if len(rest) == 0 {
				return false
			}
			plain, rest = append(plain, rest[0]), rest[1:]
		}
	}
	return f.fits(c, append(plain, rest...))
}

// begins is what is known of the beginning of a word.
func (w word) begins() string {
	if w.static {
		return w.text
	}
	return w.head
}

// rest is what follows of a word, as far as it is known.
func (w word) rest(known string) word {
	w.text, w.head = known, known
	return w
}

// Settings of git that hold no login and run nothing, regions of AWS, and queues.
var (
	harmlessKey  = regexp.MustCompile(`^(?:(?:user|branch|core|init|pull|push|merge|diff|color|fetch|rebase)\.[\w.-]+|remote\.[\w.-]+\.(?:url|fetch))$`)
	regions      = regexp.MustCompile(`^[a-z]{2}(?:-[a-z]+)+-\d$`)
	packages     = regexp.MustCompile(`^[A-Za-z0-9*](?:[A-Za-z0-9+_@*-]|\.\d)*$`)
	buckets      = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{2,62}(?:/.*)?$`)
	wordOnly     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	signs        = regexp.MustCompile(`%[-+ ]*G`)
	locals       = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	repositories = regexp.MustCompile(`^(?:github\.com/)?[\w-][\w.-]*/[\w-][\w.-]*$`)
	queues       = regexp.MustCompile(`^https://sqs\.[a-z0-9-]+\.amazonaws\.com/\d+/[\w.-]+$`)
)

// value reports whether a word is of a kind, and one.
func (k kind) value(c *command, w word) bool { return !w.open() && k.fits(c, w) }

// fits reports whether a word is of a kind.
func (k kind) fits(c *command, w word) bool {
	switch k {
	case anyText:
		return true
	case aFile:
		if strings.Contains(w.text, "://") {
			return false
		}
		c.read(w)
		return true
	case anOutput:
		c.written(w)
		return true
	case aPlace:
		return !strings.Contains(w.text, "://")
	case aNumber:
		return w.static && w.text != "" && strings.Trim(w.text, "0123456789abcdefhikmnosuxKMGTPEB.,:+-%") == ""
	case aDate:
		return w.begins() != "" && w.begins()[0] == '+'
	case aMode:
		return w.static && w.text != "" && !strings.ContainsAny(w.text, "st") && strings.Trim(w.text, "ugoarwxX+-=,01234567") == "" && len(strings.TrimLeft(w.text, "0")) < 14 && !(strings.Trim(w.text, "01234567") == "" && len(strings.TrimLeft(w.text, "0")) > 3)
	case aFormat:
		return w.static && !w.glob && !signs.MatchString(w.text) && !strings.Contains(w.text, "signature")
	case aShape:
		for _, p := range []string{"jsonpath=", "custom-columns=", "go-template="} {
			if strings.HasPrefix(w.begins(), p) {
				return true
			}
		}
		return w.static && slices.Contains([]string{"json", "yaml", "wide", "name"}, w.text)
	case aLink:
		if rest, is := strings.CutPrefix(w.text, "https://github.com/"); is {
			w.text = rest
		} else if rest, is := strings.CutPrefix(w.text, "https://gitlab.com/"); is {
			w.text = rest
		}
		return aName.fits(c, w)
	case aName:
		return w.static && !strings.Contains(w.text, "://") && !climbs(w.text) && strings.IndexAny(w.text, "@~/<+-") != 0
	case aChart:
		return w.static && !strings.Contains(w.text, ":") && strings.IndexAny(w.text, "@~") != 0
	}
	switch k {
	case aFilter:
		if w.static && jqMore.MatchString(w.text) {
			c.secrets = true
			c.find(T1s, "shows the environment, or reads more than the file")
		}
		return w.static && filters(w.text, nil)
	case aPackage:
		return w.static && packages.MatchString(w.text) // an ending would be a file's
	case aKey:
		return w.static && harmlessKey.MatchString(w.text)
	case anAPI:
		return w.static && !strings.ContainsAny(w.text, ":@")
	case aRegion:
		return w.static && regions.MatchString(w.text)
	case aSymbol:
		return !strings.Contains(w.text, "@") && aName.fits(c, w)
	case aPath, anID:
		w.text = strings.TrimPrefix(w.text, "/")
		return aName.fits(c, w)
	case aBucket:
		w.text = strings.TrimPrefix(w.text, "s3://")
		return w.static && buckets.MatchString(w.text)
	case aQueue:
		return w.static && queues.MatchString(w.text)
	case aQuery:
		return w.static && !strings.HasPrefix(w.text, "@") && !strings.Contains(w.text, "://")
	case aWord:
		return w.static && wordOnly.MatchString(w.text)
	case aVar:
		return w.static && variables.MatchString(w.text)
	case aLocal:
		return w.static && locals.MatchString(w.text)
	case aRepo:
		return w.static && repositories.MatchString(w.text)
	}
	if list, is := strings.CutPrefix(string(k), "{"); is {
		return w.static && !w.glob && slices.Contains(strings.Split(strings.TrimSuffix(list, "}"), ","), w.text)
	}
	return false
}
