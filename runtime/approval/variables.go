package approval

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// set notes the variable that a number is given to.
func (c *command) set(x syntax.ArithmExpr) {
	if b, is := x.(*syntax.BinaryArithm); is && b.Op == syntax.Assgn {
		if w, is := b.X.(*syntax.Word); is && w.Lit() != "" {
			c.mine[w.Lit()] = c.mine[w.Lit()] || !c.fails(w.Lit(), b)
		}
	}
}

// fails reports whether what a variable of the environment is set to may be an error,
// after which the shell goes on with the next line, and the variable is as it was.
func (c *command) fails(name string, value syntax.Node) bool {
	if c.Exported == nil || !c.Exported(name) {
		return false
	}
	may := false
	syntax.Walk(value, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			return false
		case *syntax.ArithmExp, *syntax.BinaryArithm:
			may = true
		case *syntax.ArrayElem:
			may = may || x.Index != nil
		case *syntax.ParamExp:
			may = may || x.Index != nil || x.Slice != nil || x.Excl || x.Length || x.Exp != nil
		}
		return !may
	})
	return may
}

// assign judges assignments; those that stay are remembered.
func (c *command) assign(list []*syntax.Assign, stays bool) {
	for _, a := range list {
		if a.Name == nil {
			if a.Value != nil {
				c.words(a.Value)
			}
			continue
		}
		name := a.Name.Value
		value := word{}
		if a.Value != nil {
			value = c.one(a.Value)
		} else if a.Array == nil && !a.Naked {
			value = literal("")
		}
		if a.Array != nil {
			c.nested(a.Array)
		}
		if a.Index != nil {
			c.workedOut(a.Index)
			c.nested(a.Index)
		}
		if a.Naked && a.Value == nil {
			c.loosen(name)
			continue
		}
		c.part = c.show(a)
		c.changed(name, value)
		if a.Array != nil || a.Value != nil {
			c.numbered(name, a.Value)
		}
		if c.foreign(name, a) {
			c.take(name)
		}
		if stays && a.Index == nil && !a.Append && !c.aside && !c.fails(name, a) {
			c.mine[name] = true
		}
		if !stays {
			c.exported(name, value)
		}
		if c.settled != nil && c.settled.plain[a] && value.static && !value.glob {
			c.settle(name, value.text, a.Pos())
		} else {
			c.loosen(name)
		}
	}
}

// loads lists the variables that choose which programs run or what they load.
// A name that ends in _ stands for all that begin so.
var loads = []string{"PATH", "LD_", "DYLD_", "BASH_", "ENV", "IFS", "PS0", "PS1", "PS2", "PROMPT_", "HISTFILE", "HISTCONTROL", "HISTIGNORE", "HISTTIMEFORMAT", "FCEDIT", "INPUTRC", "TMOUT", "POSIXLY_CORRECT", "EXECIGNORE", "FIGNORE", "FUNCNEST", "GLOBSORT", "COMP_", "READLINE_", "FPATH", "ZDOTDIR", "MAIL", "MAILPATH", "GCONV_PATH", "GOENV", "GOROOT", "TAR_OPTIONS", "RIPGREP_CONFIG_PATH", "RPM_CONFIGDIR", "APT_CONFIG", "PS4", "SHELL", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER",
	"GIT_", "PYTHON", "NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB", "PERL5DB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "KUBECTL_", "TF_CLI_", "TF_PLUGIN_CACHE_DIR", "TERRAFORM_CONFIG", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
	"AWS_ENDPOINT_", "LESSOPEN", "LESSCLOSE", "LESS", "MAKEFLAGS", "GOFLAGS", "CARGO_", "RUSTC", "CC", "CXX", "HOME", "CDPATH", "BASHOPTS", "SHELLOPTS", "GLOBIGNORE", "ANSIBLE_",
	"HELM_", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_", "SSH_ASKPASS", "SUDO_ASKPASS", "NPM_CONFIG_", "PIP_"}

// eitherCase are variables that some programs, or zsh, know by small letters, too.
var eitherCase = regexp.MustCompile(`^(?:(?i:(?:https?|all|no)_proxy|npm_config_\w*)|(?:cd|f|mail|man)?path)$`)

// variable judges that a variable is changed, to what is not known.
func (c *command) variable(name string) {
	c.changed(name, word{})
	c.loosen(name)
}

// changed judges that a variable is changed.
func (c *command) changed(name string, value word) {
	upper := name
	if eitherCase.MatchString(name) {
		upper = strings.ToUpper(name)
	}
	for _, l := range loads {
		switch {
		case upper == l, strings.HasSuffix(l, "_") && strings.HasPrefix(upper, l), l == "PYTHON" && strings.HasPrefix(upper, l):
			if l == "KUBECONFIG" || l == "DOCKER_HOST" || l == "DOCKER_CONTEXT" {
				c.find(T4, "chooses another cluster or machine by "+name)
			} else {
				c.find(TX, "sets "+name+", by which programs choose what they run or load")
			}
			return
		}
	}
	if c.Exported != nil && name != "_" && c.Exported(name) {
		c.exported(name, value) // it stays so when it is set
	}
}

// plainVariables tell programs how to look, and nothing to load, run or write.
var plainVariables = []string{"LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "DEBIAN_FRONTEND", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_DEFAULT_OUTPUT",
	"TF_IN_AUTOMATION", "TF_INPUT", "GOOS", "GOARCH", "CGO_ENABLED", "NAMESPACE", "NS", "ENVIRONMENT", "REGION", "PROJECT", "CLUSTER", "RELEASE", "VERSION"}

// elsewhere are variables that direct a client to another machine.
var elsewhere = strings.Fields("PGHOST PGHOSTADDR PGSERVICE PGSERVICEFILE MYSQL_HOST CONTAINER_HOST CONTAINER_CONNECTION VAULT_ADDR CONSUL_HTTP_ADDR NOMAD_ADDR ARGOCD_SERVER GH_HOST GITLAB_HOST GITLAB_URI BUILDKIT_HOST DOCKER_HOST ETCDCTL_ENDPOINTS OS_AUTH_URL")

// exported judges a variable that programs are given: some of them name code to
// run, and no list of those is whole.
func (c *command) exported(name string, value word) {
	value.static = value.static && !value.glob
	switch {
	case slices.Contains([]string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}, name) && !value.static:
		c.find(T4, "chooses an account by "+name+", whose value is not known")
	case slices.Contains([]string{"AWS_REGION", "AWS_DEFAULT_REGION"}, name) && !(value.static && regions.MatchString(value.text)):
		c.find(T4, "chooses another machine by "+name+", which becomes part of an address")
	case name == "TF_WORKSPACE":
		c.find(T3, name+" chooses a workspace, which is made where there is none, also to look at it")
	case name == "TZ" && !(value.static && zones.MatchString(value.text)):
		c.find(T3, name+" may name a file")
	case (name == "TERM" || strings.HasPrefix(name, "LANG") || strings.HasPrefix(name, "LC_")) && (!value.static || strings.Contains(value.text, "/")):
		c.find(T3, name+" names a file that programs load")
	case slices.Contains(plainVariables, name), strings.HasPrefix(name, "LC_"), strings.HasPrefix(name, "TF_VAR_"):
	case slices.Contains(elsewhere, name):
		c.find(T4, "chooses another machine by "+name)
	case strings.HasSuffix(name, "PAGER") && value.static && (value.text == "" || value.text == "cat"):
	default:
		c.find(T3, name+" may decide what programs run, load or write")
	}
}

// zones matches a time zone by its name.
var zones = regexp.MustCompile(`^(?:[A-Za-z]\w*(?:[-+/][A-Za-z0-9_+-]+)*)?$`)

// numbered judges a value for a variable that the shell takes for a number as soon as
// it is set; nil is one that is not known.
func (c *command) numbered(name string, value *syntax.Word) {
	if !slices.Contains([]string{"RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "HISTCMD", "EPOCHSECONDS", "BASHPID", "BASH_SUBSHELL"}, name) {
		return
	}
	if value != nil {
		if text := value.Lit(); text != "" && strings.Trim(text, "0123456789") == "" {
			return
		}
		if len(value.Parts) == 1 {
			switch x := value.Parts[0].(type) {
			case *syntax.CmdSubst:
				if number(x) {
					return
				}
			case *syntax.ArithmExp:
				return // judged by itself
			}
		}
	}
	c.find(TX, "counts with text that is known only when it runs, and bash may run a command in it")
}

// special are variables that the shell sets by itself.
var special = []string{"_", "RANDOM", "SRANDOM", "LINENO", "SECONDS", "UID", "EUID", "PPID", "BASHPID", "REPLY", "MAPFILE", "OPTARG", "OPTIND", "OLDPWD", "DIRSTACK", "GROUPS", "FUNCNAME", "PIPESTATUS", "COPROC", "HISTCMD", "EPOCHSECONDS", "EPOCHREALTIME", "BASH_REMATCH"}

// foreign reports whether an assignment may give a variable such text.
func (c *command) foreign(name string, a *syntax.Assign) bool {
	from := slices.Contains(special, name)
	if a.Value != nil {
		from = from || c.suspect(a.Value)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			from = from || e.Value != nil && c.suspect(e.Value)
		}
	}
	return from
}

// suspect reports whether a word may hold text that is run where bash takes it for
// a number: text from elsewhere, or any of what a command in a subscript is made of.
func (c *command) suspect(w *syntax.Word) bool {
	from := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			from = from || !number(x)
			return false
		case *syntax.ProcSubst, *syntax.ExtGlob:
			from = true
		case *syntax.ArithmExp:
			return false // a number
		case *syntax.ParamExp:
			if x.Length {
				return false
			}
			from = from || x.Param == nil || c.taken(x.Param.Value) || x.Excl || strings.Trim(x.Param.Value, "0123456789@*") == "" && x.Param.Value != "0"
			if x.Index != nil {
				return x.Repl != nil || x.Exp != nil
			}
		case *syntax.SglQuoted:
			from = from || strings.ContainsAny(x.Value, "[$`") || x.Dollar && strings.Contains(x.Value, `\\`)
		case *syntax.Lit:
			from = from || strings.ContainsAny(x.Value, "[$`")
		}
		return !from
	})
	return from
}

// tests judges the words of test, which takes some of them for names of variables.
func (c *command) tests(args []*syntax.Word) {
	if len(args) > 0 && args[len(args)-1].Lit() == "]" {
		args = args[:len(args)-1]
	}
	foreign := len(args) == 2 && c.suspect(args[0]) && c.suspect(args[1])
	for i, w := range args {
		if lit := args[max(i-1, 0)].Lit(); i > 0 && (lit == "-v" || lit == "-R") {
			foreign = foreign || c.suspect(w) || setsInside(c.text(w.Parts).text)
		}
		for _, p := range w.Parts {
			switch p.(type) {
			case *syntax.ParamExp, *syntax.CmdSubst:
				foreign = foreign || c.suspect(&syntax.Word{Parts: []syntax.WordPart{p}}) // it may become several words
			}
		}
	}
	if foreign {
		c.find(TX, "takes text that is not known for the name of a variable, which may run it")
	}
}

// options reports whether a word may be, or become, the option of test that takes the
// name of a variable.
func (w word) options() bool {
	switch {
	case !w.open():
		return w.text == "-v" || w.text == "-R"
	case !w.static:
		begins := w.begins()
		return w.many && !w.found && (begins == "" || strings.HasPrefix("-v", begins) || strings.HasPrefix("-R", begins))
	}
	pattern := brackets.ReplaceAllString(w.text, "?")
	v, err := path.Match(pattern, "-v")
	r, _ := path.Match(pattern, "-R")
	return v || r || err != nil
}

// variables matches the name of a variable, or of one of an array that has a number.
var variables = regexp.MustCompile(`^[A-Za-z_]\w*(?:\[(?:\d+|@|\*)\])?$`)

// named judges the same words once they are read, however the option is written and
// whatever starts test: what follows it must be written in the line.
func (c *command) named(args []word, direct bool) {
	for i, w := range args {
		apart := w.many && (!direct || w.begins() != "") // it may become the option and the name
		after := i > 0 && (args[i-1].options() || args[i-1].open() && w.open())
		if w.open() && (apart || after || w.spread && w.options()) || i > 0 && args[i-1].options() && strings.Contains(w.text, "[") && !variables.MatchString(w.text) {
			c.find(TX, "takes text that is not known for the name of a variable, which may run it")
			return
		}
	}
}

// tested reports whether the words of test are one test of a file or a text, or one
// comparison, as every shell reads it.
func tested(args []word, bracket bool) bool {
	all := texts(args)
	if slices.ContainsFunc(args, word.open) {
		return false
	}
	if bracket && len(all) > 0 && all[len(all)-1] == "]" {
		all = all[:len(all)-1]
	}
	if len(all) > 0 && all[0] == "!" {
		all = all[1:]
	}
	switch len(all) {
	case 2:
		return slices.Contains([]string{"-d", "-e", "-f", "-h", "-L", "-n", "-r", "-s", "-w", "-x", "-z"}, all[0])
	case 3:
		if slices.Contains([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, all[1]) {
			return digits(all[0]) && digits(all[2]) // a subscript would be worked out by some
		}
		return slices.Contains([]string{"=", "!=", "-nt", "-ot"}, all[1])
	}
	return false
}

// formatted matches a format of printf that only prints: "%n" sets a variable.
var formatted = regexp.MustCompile(`^(?:[^%]|%(?:%|[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?[hlLjzt]*[diouxXeEfFgGaAcsbqQ]|\([^()]*\)T))*$`)

// number reports whether what a command prints is a number whatever it is given.
func number(x *syntax.CmdSubst) bool {
	if len(x.Stmts) != 1 {
		return false
	}
	s := x.Stmts[0]
	for {
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		if b.Op != syntax.Pipe {
			return false
		}
		s = b.Y
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	for _, a := range call.Args[1:] {
		if lit := a.Lit(); lit == "" || lit[0] != '-' && lit[0] != '+' {
			return false
		}
	}
	return slices.Contains([]string{"wc", "date", "nproc"}, call.Args[0].Lit())
}

// workedOut judges text that the shell takes for a number.
func (c *command) workedOut(n syntax.Node) {
	foreign := false
	syntax.Walk(n, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			foreign = foreign || !number(x)
			return false
		case *syntax.ParamExp:
			if x.Length {
				return false
			}
			foreign = foreign || x.Param != nil && (c.taken(x.Param.Value) || slices.Contains([]string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "@", "*"}, x.Param.Value))
		case *syntax.Word:
			foreign = foreign || c.taken(x.Lit())
			if name := x.Lit(); name != "" {
				c.complained(&syntax.ParamExp{Param: &syntax.Lit{Value: name}}) // the name alone is its value
			}
		}
		return true
	})
	c.complained(n)
	if foreign {
		c.find(TX, "counts with text that is known only when it runs, and bash may run a command in it")
	}
}

// complained judges the values in a node that the shell keeps, or shows when they are
// not what it expects.
func (c *command) complained(n syntax.Node) {
	compares := c.compares
	c.compares = false
	syntax.Walk(n, func(n syntax.Node) bool {
		x, is := n.(*syntax.ParamExp)
		if is {
			c.shown(x)
		}
		return true
	})
	c.compares = compares
}

// shown judges the value of a variable that a command is given: what the line did not
// set is the user's, and may be a login.
func (c *command) shown(x *syntax.ParamExp) {
	if c.compares && (c.traced == nil || !*c.traced) || x.Param == nil || x.Length || x.IsSet || x.Names != 0 || x.Exp != nil && (x.Exp.Op == syntax.AlternateUnset || x.Exp.Op == syntax.AlternateUnsetOrNull) {
		return
	}
	name := x.Param.Value
	if x.Excl {
		if x.Index != nil {
			return // the subscripts
		}
		known := false
		if name, known = c.vars[name]; !known {
			c.find(T1s, "shows a variable whose name is not known")
			return
		}
	}
	if !c.mine[name] && !slices.Contains(shownVariables, name) && !strings.HasPrefix(name, "LC_") && strings.Trim(name, "0123456789@*#?$!-") != "" {
		c.find(T1s, "shows the value of "+name)
	}
}

// shownVariables may be shown: they are known to hold no login.
var shownVariables = strings.Fields(`HOME PATH PWD OLDPWD USER LOGNAME SHELL LANG LANGUAGE TZ TERM COLUMNS LINES EDITOR HOSTNAME HOSTTYPE OSTYPE MACHTYPE TMPDIR SSH_AUTH_SOCK XDG_RUNTIME_DIR VIRTUAL_ENV CI NO_COLOR SHLVL IFS
	AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE AWS_DEFAULT_PROFILE KUBECONFIG TF_WORKSPACE GOPATH GOROOT GOBIN GOOS GOARCH JAVA_HOME
	RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME LINENO UID EUID PPID BASHPID BASH_VERSION BASH_REMATCH PIPESTATUS FUNCNAME GROUPS DIRSTACK`)

// value is what a variable is known to hold.
func (c *command) value(x *syntax.ParamExp) (string, bool) {
	if x.Param == nil || x.Excl || x.Length || x.Width || x.IsSet || x.Index != nil || x.Slice != nil || x.Repl != nil || x.Names != 0 || x.Exp != nil || x.NestedParam != nil {
		return "", false
	}
	switch name := x.Param.Value; name {
	case "HOME":
		return c.Home, c.Home != "" && !c.loose(name)
	case "PWD":
		if len(c.dirs) == 1 && !c.loose(name) {
			return c.dirs[0], true
		}
		return "", false
	default:
		value, known := c.vars[name]
		if !known && c.settled != nil {
			c.settled.used[name] = true
		}
		return value, known
	}
}

// entangled reports whether a command between backquotes holds others, or a
// here-document: a backslash in them may count once, twice, or not at all.
func entangled(x *syntax.CmdSubst) bool {
	found := false
	for _, s := range x.Stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch y := n.(type) {
			case *syntax.CmdSubst:
				found = found || y.Backquotes
			case *syntax.Redirect:
				found = found || y.Op == syntax.Hdoc || y.Op == syntax.DashHdoc
			}
			return !found
		})
	}
	return found
}
