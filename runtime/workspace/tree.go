package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strconv"
	"strings"

	"github.com/talkops-ai/talkops/sdk/sandbox"
)

// A Kind is what an entry of a tree is.
type Kind string

// The kinds.
const (
	File   Kind = "file"
	Dir    Kind = "dir"
	Closed Kind = "closed" // a directory whose entries cannot be looked at
	Link   Kind = "link"
	Other  Kind = "other" // a pipe, socket or device
)

// An Entry is the state of one thing in a sandbox.
type Entry struct {
	Kind   Kind        `json:"kind"`
	Mode   fs.FileMode `json:"mode,omitempty"` // permission bits alone; of a file or directory
	Size   int64       `json:"size,omitempty"`
	Sum    string      `json:"sum,omitempty"`    // of a file's content: "sha256:…", or "cksum:…" where the sandbox has no better; "" if it cannot be read
	Target string      `json:"target,omitempty"` // of a link

	stamp string // what changes with every change; "" if that cannot be told
}

// same reports whether nothing that comes home tells a and b apart.
func (a Entry) same(b Entry) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case File:
		return a.Mode == b.Mode && a.Size == b.Size && a.Sum == b.Sum
	case Dir, Closed:
		return a.Mode == b.Mode
	case Link:
		return a.Target == b.Target
	}
	return true
}

// A Tree is what stands below a directory, by relative slash path.
type Tree map[string]Entry

// caches can be made again and stay behind.
var caches = []string{".git", ".venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".terraform", ".terragrunt-cache", "cdk.out"}

// homeCaches are those a home directory has, and histories what a shell or client
// keeps there: they are left out at the top only.
var (
	homeCaches = []string{".cache", ".npm", ".terraform.d", ".ansible"}
	histories  = []string{".bash_history", ".ash_history", ".sh_history", ".python_history", ".wget-hsts", ".lesshst", ".viminfo"}
)

// privateDirs is where providers keep files of commands: below the directory for
// temporary files, which may be the working directory.
const privateDirs = ".talkops-[0-9]*"

// leftOut are the tests of find for what comes home from nowhere: caches, unless
// sent (which may be nil) holds one of that name, histories, and files of providers.
func leftOut(sent *Plan) string {
	var tests []string
	for _, c := range caches {
		if c == ".git" || !sent.holds(c) {
			tests = append(tests, "-type d -name "+sandbox.Quote(c))
		}
	}
	for _, c := range homeCaches {
		if !sent.holds(c) {
			tests = append(tests, "-type d -path "+sandbox.Quote("./"+c))
		}
	}
	for _, h := range histories {
		tests = append(tests, "-path "+sandbox.Quote("./"+h))
	}
	tests = append(tests, "-type d -perm 700 -name "+sandbox.Quote(privateDirs)+" -path "+sandbox.Quote("./"+privateDirs))
	return `\( ` + strings.Join(tests, " -o ") + ` \)`
}

// holds reports whether the plan sends something below a directory of that name.
func (p *Plan) holds(dir string) bool {
	if p == nil {
		return false
	}
	for _, item := range p.Items {
		if item.Mode.IsDir() && (item.Name == dir || strings.HasSuffix(item.Name, "/"+dir)) {
			return true
		}
	}
	return false
}

// sumScript prints for its arguments their number, each of them, and what the
// best tool for checksums says of them all, every part ended by NUL. It starts
// one process for as many files as a command line holds.
const sumScript = `printf "s%d\0" $#; printf "%s\0" "$@"
if command -v sha256sum >/dev/null; then printf "sha256\0"; sha256sum "$@" 2>/dev/null; else printf "cksum\0"; cksum "$@" 2>/dev/null; fi
printf "\0"`

// listScript prints the state of everything below $1 that the tests of find
// select, with the checksums of files if $2 is not empty. Names are ended by NUL
// and never read back from what a tool prints about them. It needs POSIX
// utilities only, and is fast where find can print, or stat takes a format. What
// the last words say is that nothing was lost on the way, as on a full disk.
const listScript = `cd -- "$1" || exit 91
printf "t%%s\0" "$(date +%%s)"
if find . -prune -printf "" 2>/dev/null; then
	find . %[1]s \( -type d \( ! -readable -o ! -executable \) -printf "fx %%m %%s %%i %%C@ %%T@\0%%l\0%%p\0" -o -printf "f%%y %%m %%s %%i %%C@ %%T@\0%%l\0%%p\0" \)
else
	find . %[1]s -exec sh -c '
	printf "b%%d\0" $#
	for f do
		if [ -h "$f" ]; then t=$(readlink -- "$f"; echo x); printf "l%%s\0%%s\0" "${t%%??}" "$f"
		elif [ -d "$f" ]; then if [ -r "$f" ] && [ -x "$f" ]; then printf "d\0%%s\0" "$f"; else printf "x\0%%s\0" "$f"; fi
		elif [ -f "$f" ]; then printf "f\0%%s\0" "$f"
		else printf "o\0%%s\0" "$f"
		fi
	done
	if stat -c %%f . >/dev/null 2>&1; then printf "stat\0"; stat -c "%%f %%s %%i %%Z %%Y %%n" "$@" 2>/dev/null
	else printf "ls\0"; for f do ls -ldn "$f" 2>/dev/null | { read -r m l u g s rest && printf "%%s %%s - - - %%s\n" "$m" "$s" "$f"; }; done
	fi
	printf "\0"' sh {} +
fi
r=$?
if [ -n "$2" ]; then find . %[1]s -type f -exec sh -c '%[2]s' sh {} + 2>/dev/null; fi
printf 'end\0' && exit $r`

// Bounds of what a sandbox may tell of itself.
const (
	maxListing = 512 << 20
	maxEntries = 2_000_000
)

// A Listing is a Tree and how it was come by.
type Listing struct {
	Tree  Tree
	Blind []string // a line for everything that could not be looked at
}

// List looks at what stands below dir of sb. Caches that can be made again are
// left out, unless sent (which may be nil) holds one of that name; so are
// histories of a home directory. With known, an earlier Tree of the same place,
// only the content of files that changed since is read.
func List(ctx context.Context, sb sandbox.Sandbox, dir string, sent *Plan, known Tree) (*Listing, error) {
	return listBut(ctx, sb, dir, leftOut(sent), known, func(int64) {})
}

// listBut is List with the tests of find for what is left out. With known, reads is
// told how many bytes the sandbox has to read.
func listBut(ctx context.Context, sb sandbox.Sandbox, dir, but string, known Tree, reads func(int64)) (*Listing, error) {
	var unknown func(string, *Entry) bool
	if known != nil {
		unknown = func(name string, e *Entry) bool {
			old, was := known[name]
			if was && e.stamp != "" && old.stamp == e.stamp && old.Size == e.Size && old.Kind == File && old.Sum != "" {
				e.Sum = old.Sum
				return false
			}
			reads(e.Size)
			return true
		}
	}
	return list(ctx, sb, dir, but+` -prune -o ! -path .`, unknown)
}

// looksAgain is how often at most what only looks is repeated when it found the sandbox's
// disk full: every time there may be a little more room, which was kept for that.
const looksAgain = 8

// list reads the content of files for which read says so, or of all.
func list(ctx context.Context, sb sandbox.Sandbox, dir, tests string, read func(name string, e *Entry) bool) (*Listing, error) {
	all := "all"
	if read != nil {
		all = ""
	}
	script := fmt.Sprintf(listScript, tests, sumScript)
	var out, stderr string
	var exit int
	for n, had := 0, 0; ; n++ {
		var err error
		var whole bool
		out, stderr, exit, err = gather(ctx, sb, "/bin/sh", "-c", script, "sh", dir, all)
		if err == nil && exit == 91 {
			return nil, sandbox.Errorf(sandbox.CodeFileNotFound, "no directory %s in the sandbox", dir)
		}
		if out, whole = strings.CutSuffix(out, "end\x00"); err == nil && !whole {
			err = sandbox.Errorf(sandbox.CodeNoSpace, "the list of files in %s did not come whole; is a disk of the sandbox full?", dir)
		}
		if err == nil {
			break
		}
		if sandbox.CodeOf(err) != sandbox.CodeNoSpace || n == looksAgain || n > 1 && len(out) <= had {
			return nil, err // what can be long is not repeated where that does not help
		}
		had = len(out)
	}
	r := reader{rest: out, tree: Tree{}}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	l := &Listing{Tree: r.tree}
	if exit != 0 {
		l.Blind = strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' })
		if len(l.Blind) == 0 {
			l.Blind = []string{fmt.Sprintf("listing %s ended with %d", dir, exit)}
		}
	}
	if read == nil {
		return l, nil
	}
	var ask []string
	for name, e := range l.Tree {
		if e.Kind == File {
			if read(name, &e) {
				ask = append(ask, name)
			}
			l.Tree[name] = e
		}
	}
	sort.Strings(ask)
	return l, sum(ctx, sb, dir, ask, l.Tree)
}

// sum fills in the checksums of the named files of a tree.
func sum(ctx context.Context, sb sandbox.Sandbox, dir string, names []string, tree Tree) error {
	script := `cd -- "$1" && shift || exit 91; ` + sumScript
	most := sandbox.MaxArg / 2 // bytes of names
	for again := 0; len(names) > 0; {
		args := []string{"/bin/sh", "-c", script, "sh", dir}
		n := 0
		for size := 0; n < len(names) && size < most; n++ {
			args = append(args, "./"+names[n])
			size += len(names[n]) + 8
		}
		out, _, _, err := gather(ctx, sb, args...)
		if sandbox.CodeOf(err) == sandbox.CodeNoSpace && again < looksAgain {
			// A short command and answer need no room, or little.
			most = 4 << 10
			again++
			continue
		}
		if err != nil {
			return err
		}
		r := reader{rest: out, tree: tree}
		if err := r.read(); err != nil {
			return fmt.Errorf("checksums in %s: %w", dir, err)
		}
		names = names[n:]
	}
	return nil
}

// errTooMuch says that a sandbox tells more of itself than is believed.
var errTooMuch = errors.New("there is more than can be looked at")

// gather runs a command and returns what it prints, within bounds.
func gather(ctx context.Context, sb sandbox.Sandbox, args ...string) (stdout, stderr string, exit int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, diag := &bounded{most: maxListing, over: cancel}, &bounded{most: 1 << 20, over: func(error) {}}
	exit, err = sb.Exec(ctx, sandbox.Cmd{Args: args, Dir: "/", Stdout: out, Stderr: diag})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errTooMuch) {
		err = cause
	}
	return out.buf.String(), diag.buf.String(), exit, err
}

// A bounded buffer takes so much and then says that it is over.
type bounded struct {
	buf  bytes.Buffer
	most int
	over func(error)
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.most {
		b.over(errTooMuch)
		return len(p), nil
	}
	return b.buf.Write(p)
}

// A reader makes a Tree of what the scripts print.
type reader struct {
	rest string
	tree Tree
	now  int64 // the sandbox's clock when the listing began, seconds
}

var errListing = errors.New("the sandbox's answer makes no sense")

func (r *reader) next() (string, bool) {
	field, rest, ok := strings.Cut(r.rest, "\x00")
	r.rest = rest
	return field, ok
}

func (r *reader) read() error {
	for r.rest != "" {
		head, ok := r.next()
		if !ok || head == "" {
			return errListing
		}
		var err error
		switch head[0] {
		case 't':
			r.now, _ = strconv.ParseInt(head[1:], 10, 64)
		case 'f':
			err = r.found(head[1:])
		case 'b':
			err = r.batch(head[1:])
		case 's':
			err = r.sums(head[1:])
		default:
			err = errListing
		}
		if err != nil {
			return err
		}
		if len(r.tree) > maxEntries {
			return errTooMuch
		}
	}
	return nil
}

// put notes an entry whose inode, time of change and time of writing are given.
func (r *reader) put(name string, e Entry, inode, changed, written string) {
	// What changed just now may change again without a sign.
	secs, _, _ := strings.Cut(changed, ".")
	if at, err := strconv.ParseInt(secs, 10, 64); err == nil && at < r.now-2 {
		e.stamp = inode + " " + changed + " " + written
	}
	if name, ok := below(name); ok {
		r.tree[name] = e
	}
}

// below is the relative path that find gave, cleaned; ok is false for the top and
// for what no file system has.
func below(name string) (string, bool) {
	rel, ok := strings.CutPrefix(name, "./")
	if name == "." {
		return name, true
	}
	return rel, ok && fs.ValidPath(strings.ToValidUTF8(rel, "?")) && rel != "."
}

// found reads an entry as find prints it.
func (r *reader) found(state string) error {
	target, ok1 := r.next()
	name, ok2 := r.next()
	f := strings.Fields(state)
	if !ok1 || !ok2 || len(f) != 6 {
		return errListing
	}
	mode, err1 := strconv.ParseUint(f[1], 8, 32)
	size, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil || size < 0 {
		return errListing
	}
	e := Entry{Kind: Other}
	switch f[0] {
	case "f":
		e = Entry{Kind: File, Mode: fs.FileMode(mode) & fs.ModePerm, Size: size}
	case "d":
		e = Entry{Kind: Dir, Mode: fs.FileMode(mode) & fs.ModePerm}
	case "x":
		e = Entry{Kind: Closed, Mode: fs.FileMode(mode) & fs.ModePerm}
	case "l":
		e = Entry{Kind: Link, Target: target}
	}
	r.put(name, e, f[3], f[4], f[5])
	return nil
}

// batch reads the entries of one run of a shell.
func (r *reader) batch(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > len(r.rest) {
		return errListing
	}
	names, kinds := make([]string, n), make([]string, n)
	for i := range n {
		var ok1, ok2 bool
		kinds[i], ok1 = r.next()
		names[i], ok2 = r.next()
		if !ok1 || !ok2 || kinds[i] == "" {
			return errListing
		}
	}
	how, _ := r.next()
	text, ok := r.next()
	if !ok {
		return errListing
	}
	for i, name := range names {
		// A thing that went meanwhile has no line.
		f := strings.SplitN(text, " ", 6)
		if len(f) != 6 || !strings.HasPrefix(f[5], name+"\n") {
			continue
		}
		text = f[5][len(name)+1:]
		size, err := strconv.ParseInt(f[1], 10, 64)
		perm, ok := permissions(how, f[0])
		if !ok {
			return errListing
		}
		if err != nil { // a device has none
			size = 0
		}
		e := Entry{Kind: Other}
		switch kinds[i][0] {
		case 'f':
			e = Entry{Kind: File, Mode: perm, Size: size}
		case 'd':
			e = Entry{Kind: Dir, Mode: perm}
		case 'x':
			e = Entry{Kind: Closed, Mode: perm}
		case 'l':
			e = Entry{Kind: Link, Target: kinds[i][1:]}
		}
		r.put(name, e, f[2], f[3], f[4])
	}
	return nil
}

// permissions reads a mode as stat (hexadecimal) or ls (letters) prints it.
func permissions(how, text string) (fs.FileMode, bool) {
	if how == "stat" {
		mode, err := strconv.ParseUint(text, 16, 32)
		return fs.FileMode(mode) & fs.ModePerm, err == nil
	}
	if len(text) < 10 {
		return 0, false
	}
	var mode fs.FileMode
	for i, c := range []byte(text[1:10]) {
		mode <<= 1
		if c == "rwxrwxrwx"[i] || c == 's' || c == 't' {
			mode |= 1
		}
	}
	return mode, true
}

// sums reads the checksums of one batch of files.
func (r *reader) sums(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > len(r.rest) {
		return errListing
	}
	names := make([]string, n)
	for i := range n {
		var ok bool
		if names[i], ok = r.next(); !ok {
			return errListing
		}
	}
	how, _ := r.next()
	text, ok := r.next()
	if !ok {
		return errListing
	}
	for _, name := range names {
		hash, rest, ok := cutSum(how, text, name)
		if !ok {
			continue // it went meanwhile, or cannot be read
		}
		text = rest
		rel, _ := below(name)
		if e, is := r.tree[rel]; is && e.Kind == File {
			e.Sum = how + ":" + hash
			r.tree[rel] = e
		}
	}
	return nil
}

// cutSum takes the line of name from the front of what a tool for checksums
// printed. The name is known, so that it does not matter how the tool writes odd
// ones.
func cutSum(how, text, name string) (hash, rest string, ok bool) {
	if how == "cksum" {
		f := strings.SplitN(text, " ", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], name+"\n") {
			return "", "", false
		}
		return f[0], f[2][len(name)+1:], true
	}
	const digits = 64
	escaped := strings.HasPrefix(text, `\`)
	line := strings.TrimPrefix(text, `\`)
	if len(line) < digits+2 || line[digits] != ' ' {
		return "", "", false
	}
	hash, line = line[:digits], line[digits+2:]
	forms := []string{name}
	if escaped {
		forms = []string{
			strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(name),
			strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name),
		}
	}
	for _, form := range forms {
		if rest, ok := strings.CutPrefix(line, form+"\n"); ok {
			return hash, rest, true
		}
	}
	return "", "", false
}

// Changes are what happened below a directory since an earlier state.
type Changes struct {
	Written []string // new or changed files, links and other things, sorted
	Deleted []string
	Dirs    []string // new directories, and those whose mode is another
	Gone    []string // directories that are no more
}

// Empty reports whether nothing happened.
func (c Changes) Empty() bool {
	return len(c.Written)+len(c.Deleted)+len(c.Dirs)+len(c.Gone) == 0
}

// Compare tells how to get from before to after.
func Compare(before, after Tree) Changes {
	var c Changes
	for name, e := range after {
		switch old, was := before[name]; {
		case was && old.same(e):
		case e.isDir():
			c.Dirs = append(c.Dirs, name)
		default:
			c.Written = append(c.Written, name)
		}
	}
	for name, old := range before {
		switch e, is := after[name]; {
		case old.isDir() && !(is && e.isDir()):
			c.Gone = append(c.Gone, name)
		case !old.isDir() && (!is || e.isDir()):
			c.Deleted = append(c.Deleted, name)
		}
	}
	for _, list := range [][]string{c.Written, c.Deleted, c.Dirs, c.Gone} {
		sort.Strings(list)
	}
	return c
}

func (e Entry) isDir() bool { return e.Kind == Dir || e.Kind == Closed }
