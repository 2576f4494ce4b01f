package approval

// A Context is where a command line would run.
type Context struct {
	Place     Place
	Dir       string // the directory it starts in, absolute
	Workspace string // the project's directory, absolute
	Project   string // the same on this computer; a rule may be for it alone
	Home      string // the home directory; empty: not known
	Own       string // talkops's own directory, where the machine is this computer
	Logs      string // the tools' own directory for logs, which may be read; may be empty

	// GitRuns reports whether git's configuration in a directory names programs to
	// run; nil is never.
	GitRuns func(dir string) bool

	// Embeds reports whether files in the workspace are another repository whose
	// configuration names programs to run, or may become one where the line writes beside
	// them, where the machine is this computer; nil is never.
	Embeds func() bool

	// Leads names the variables of the environment that lead programs into the project, as
	// PATH or KUBECONFIG may, where the machine is this computer; nil is none.
	Leads func() []string

	// Composes reports whether the files of docker compose for a directory may fetch
	// others; nil is never.
	Composes func(dir string) bool

	// LinksOut reports whether a link in the workspace leads out of it, where the
	// machine is this computer; nil is never.
	LinksOut func() bool

	// Secrets lists the files of credentials in the workspace, absolute, where the
	// machine is this computer; nil is none.
	Secrets func() []string

	// Dashed reports whether a file in the workspace has a name that programs take for
	// an option, where the machine is this computer; nil is never.
	Dashed func() bool

	// Spaced reports whether a file in the workspace has a name that, taken apart at its
	// blanks, is more than names in it, as Splits says; nil is never.
	Spaced func() bool

	// Local reports whether the program of a name is found in the workspace, or may be
	// where the line has written files, where the machine is this computer; nil is never.
	Local func(name string, wrote bool) bool

	// Exported reports whether programs get a variable of this name, where the machine
	// is this computer; nil is never.
	Exported func(name string) bool

	// Foreign reports whether what terraform keeps of a directory, which says where the
	// state lies, is the repository's and not from an init here; nil is never.
	Foreign func(dir string) bool

	// Imports reports whether a Python that is started in a directory for a module may find
	// code there, where the machine is this computer; nil is never.
	Imports func(dir string) bool

	// GoReaches reports whether go, to look at a directory, may fetch what the project
	// names, or start a compiler; nil is never.
	GoReaches func(dir string) bool

	// GoNewer reports whether go, in a directory, may fetch another release of itself
	// and run that; nil is never.
	GoNewer func(dir string) bool

	// LinksBelow reports whether a link in a directory, or below it, leads out of the
	// workspace, where the machine is this computer; nil is never.
	LinksBelow func(dir string) bool

	// Linked reports whether the file of an absolute path is a link, or a directory with
	// one, where the machine is this computer; nil is never.
	Linked func(name string) bool

	// Tracked lists the files of credentials, absolute, in the index of the repository
	// around a directory and in the revisions among words, or only those that differ;
	// false if a word is something else of it, or that cannot be told. Nil is none.
	Tracked func(dir string, words []string, differ bool) ([]string, bool)

	// Remotes lists what git's settings for a directory say of the addresses of other
	// repositories; false if that cannot be told. Nil is none.
	Remotes func(dir string) ([]string, bool)

	// Sways says which program that is started on this computer beside the tools, as a
	// hook, would obey the file of an absolute path once it is written, as a phrase; of a
	// name that ends in a slash, any file below it. Empty is none, and nil is never.
	Sways func(name string) string

	// Real resolves the links in an absolute path, where the machine is this
	// computer; nil leaves paths as they are.
	Real func(name string) string
}
