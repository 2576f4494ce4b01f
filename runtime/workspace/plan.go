// Package workspace decides what of a project goes up into a sandbox, sends it
// as one archive, and brings back what changed.
package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

// Rules say what may leave this computer.
type Rules struct {
	Include       []string // takes back what the skip list or git's ignore rules drop
	Exclude       []string // skips more
	AllowSecrets  []string // exceptions from the secret filter
	Gitignore     bool
	MaxFileBytes  int64
	MaxTotalBytes int64 // 0: no limit
}

// An Item is one thing that goes up.
type Item struct {
	Name   string // relative slash path
	Mode   fs.FileMode
	Size   int64
	Stored int64  // bytes of disk that a file takes; -1 if that is not known
	Link   string // target of a symlink
	Time   time.Time
}

// A Plan is what would go up, and what would not and why. Making one changes
// nothing.
type Plan struct {
	Root    string
	Items   []Item
	Bytes   int64
	Skipped map[Reason][]string // names, relative; directories end in "/"
	Tracked []string            // skipped directories that git tracks
	Alike   [][]string          // names that are one on computers which do not tell upper case from lower, or é from é

	sent  Tree            // what stands in the sandbox of it
	there map[string]bool // what of that stood there before; nil if nobody looked

	inStep  int   // files and links that need not be sent
	earlier *Home // what the sandbox had before

	filled []string          // files whose holes were sent as zeros
	large  map[string]string // the sizes of those that are too large
}

// A Reason says why something stays at home.
type Reason string

// The reasons.
const (
	SkipList   Reason = "skip list"
	Excluded   Reason = "excluded"
	GitIgnored Reason = "ignored by git"
	TooLarge   Reason = "too large"
	Secret     Reason = "may hold secrets"
	Outside    Reason = "link out of the project"
	Special    Reason = "not a file, directory or link"
	Unreadable Reason = "unreadable"
)

// A SizeError is a project larger than the upload may be.
type SizeError struct {
	Bytes, Limit int64
	Largest      []string // the largest top-level entries, with their sizes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("the project is too large to upload: %s, and the limit (sync.max_total_bytes) is %s. Largest: %s",
		Size(e.Bytes), Size(e.Limit), strings.Join(e.Largest, ", "))
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Count writes a number of things, of which word is one, for people.
func Count(n int, word string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(word, "ry"):
		word = strings.TrimSuffix(word, "y") + "ies"
	case strings.HasSuffix(word, "x"), strings.HasSuffix(word, "ch"):
		word += "es"
	default:
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// readSmall reads a regular file of at most 1 MiB.
func readSmall(name string) ([]byte, error) {
	const most = 1 << 20
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > most:
		return nil, fmt.Errorf("%s is larger than %s", name, Size(most))
	}
	return os.ReadFile(name)
}

type planner struct {
	Plan
	rules                   Rules
	ignoreFile              []pattern
	include, exclude, allow []pattern
	ignored                 map[string]bool
}

// Make walks the project at root. Nothing of the project is executed.
func Make(ctx context.Context, root string, rules Rules) (*Plan, error) {
	p := &planner{
		Plan:  Plan{Root: root, Skipped: map[Reason][]string{}},
		rules: rules, include: parsePatterns(rules.Include), exclude: parsePatterns(rules.Exclude), allow: parsePatterns(rules.AllowSecrets),
	}
	if data, err := readSmall(filepath.Join(root, ".talkopsignore")); err == nil {
		p.ignoreFile = parsePatterns(strings.Split(string(data), "\n"))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read .talkopsignore: %w", err)
	}
	if rules.Gitignore {
		var err error
		if p.ignored, err = gitIgnored(ctx, root); err != nil {
			return nil, err
		}
	}
	if err := p.walk(ctx, ""); err != nil {
		return nil, err
	}
	p.findTracked(ctx)
	p.Alike = alike(p.Items)
	if rules.MaxTotalBytes > 0 && p.Bytes > rules.MaxTotalBytes {
		return nil, &SizeError{p.Bytes, rules.MaxTotalBytes, p.largest()}
	}
	return &p.Plan, nil
}

func (p *planner) walk(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(p.Root, dir))
	if err != nil {
		if dir == "" {
			return err
		}
		p.skip(Unreadable, dir+"/")
		return nil
	}
	if dir != "" {
		if err := p.nested(ctx, dir, entries); err != nil {
			return err
		}
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if why := p.judge(name, e); why != "" {
			if e.IsDir() {
				name += "/"
			}
			p.skip(why, name)
			continue
		}
		info, err := e.Info()
		if err != nil {
			p.skip(Unreadable, name)
			continue
		}
		item := Item{Name: name, Mode: info.Mode(), Time: info.ModTime()}
		switch {
		case e.IsDir():
			p.Items = append(p.Items, item)
			if err := p.walk(ctx, name); err != nil {
				return err
			}
			continue
		case info.Mode()&fs.ModeSymlink != 0:
			if item.Link, err = os.Readlink(filepath.Join(p.Root, name)); err != nil {
				p.skip(Unreadable, name)
				continue
			}
			if !inside(dir, item.Link) {
				p.skip(Outside, name)
				continue
			}
		case !info.Mode().IsRegular():
			p.skip(Special, name)
			continue
		case info.Size() > p.rules.MaxFileBytes:
			p.skip(TooLarge, name)
			if p.large == nil {
				p.large = map[string]string{}
			}
			p.large[name] = Size(info.Size())
			if n := stored(info); n >= 0 && info.Size()-n >= leastHole {
				p.large[name] += ", of which " + Size(n) + " on the disk"
			}
			continue
		default:
			item.Size, item.Stored = info.Size(), stored(info)
			if mayTellSecrets(name) && p.holdsSecret(name) && !match(p.allow, name, false) {
				p.skip(Secret, name)
				continue
			}
			if !readable(filepath.Join(p.Root, name)) {
				p.skip(Unreadable, name)
				continue
			}
		}
		p.Items = append(p.Items, item)
		p.Bytes += item.Size
	}
	return nil
}

// nested asks git what is ignored in a repository or work tree within the project,
// of which the one around it knows nothing.
func (p *planner) nested(ctx context.Context, dir string, entries []fs.DirEntry) error {
	i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" })
	if i < 0 || !p.rules.Gitignore {
		return nil
	}
	ignored, err := gitIgnored(ctx, filepath.Join(p.Root, dir))
	if err != nil && entries[i].IsDir() && strings.Contains(err.Error(), notGit) {
		return nil // it only looks like one, so that what is around it counts
	}
	if err != nil {
		return fmt.Errorf("in %q: %w", dir, err)
	}
	for name := range ignored {
		if p.ignored == nil {
			p.ignored = map[string]bool{}
		}
		p.ignored[path.Join(dir, name)] = true
	}
	return nil
}

// judge decides by name, in the documented order.
func (p *planner) judge(name string, e fs.DirEntry) Reason {
	base := path.Base(name)
	switch {
	case base == ".git": // a directory, or the file of a work tree
		return SkipList
	case secretName(name, e.IsDir()) && !match(p.allow, name, e.IsDir()):
		return Secret
	case match(p.ignoreFile, name, e.IsDir()), match(p.exclude, name, e.IsDir()):
		return Excluded
	case match(p.include, name, e.IsDir()):
		return ""
	case p.ignored[name]:
		return GitIgnored
	case e.IsDir() && skipped[base] && !p.leadsToIncluded(name):
		return SkipList
	case !e.IsDir() && skippedFile(base):
		return SkipList
	}
	return ""
}

// leadsToIncluded reports whether an include pattern names something below dir.
func (p *planner) leadsToIncluded(dir string) bool {
	return slices.ContainsFunc(p.rules.Include, func(s string) bool {
		return strings.HasPrefix(strings.TrimPrefix(s, "/"), dir+"/")
	})
}

func (p *planner) skip(why Reason, name string) { p.Skipped[why] = append(p.Skipped[why], name) }

// inside reports whether a link in dir stays in the project, by its text.
func inside(dir, target string) bool {
	if path.IsAbs(target) || filepath.IsAbs(target) {
		return false
	}
	joined := path.Join(dir, filepath.ToSlash(target))
	return joined != ".." && !strings.HasPrefix(joined, "../")
}

func (p *planner) holdsSecret(name string) bool {
	f, err := os.Open(filepath.Join(p.Root, name))
	if err != nil {
		return true
	}
	defer f.Close()
	return secretText.MatchReader(bufio.NewReader(f))
}

func (p *planner) largest() []string {
	sizes := map[string]int64{}
	for _, item := range p.Items {
		top, _, _ := strings.Cut(item.Name, "/")
		sizes[top] += item.Size
	}
	names := slices.Collect(func(yield func(string) bool) {
		for n := range sizes {
			if !yield(n) {
				return
			}
		}
	})
	sort.Slice(names, func(i, j int) bool { return sizes[names[i]] > sizes[names[j]] })
	if len(names) > 5 {
		names = names[:5]
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%s (%s)", n, Size(sizes[n]))
	}
	return names
}

// findTracked notes which skipped directories git tracks.
func (p *planner) findTracked(ctx context.Context) {
	var dirs []string
	for _, d := range p.Skipped[SkipList] {
		if strings.HasSuffix(d, "/") && path.Base(d) != ".git" {
			dirs = append(dirs, d)
		}
	}
	if len(dirs) == 0 || !inGit(p.Root) {
		return
	}
	out, err := git(ctx, p.Root, "ls-files", "-z", "--cached")
	if err != nil {
		return
	}
	for _, d := range dirs {
		if bytes.HasPrefix(out, []byte(d)) || bytes.Contains(out, []byte("\x00"+d)) {
			p.Tracked = append(p.Tracked, d)
		}
	}
}

// gitIgnored asks git which untracked things it ignores, relative to root.
func gitIgnored(ctx context.Context, root string) (map[string]bool, error) {
	if !inGit(root) {
		return nil, nil
	}
	for _, name := range []string{".gitignore", ".git/info/exclude"} { // git would wait for somebody to write into a pipe
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return nil, fmt.Errorf("%s is not a regular file; git cannot be asked what it ignores", name)
		}
	}
	out, err := git(ctx, root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return nil, fmt.Errorf("ask git what it ignores (switch this off with sync.gitignore = false): %w", err)
	}
	set := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name = strings.TrimSuffix(name, "/"); name != "" && name != "." {
			set[name] = true
		}
	}
	return set, nil
}

// notGit is what git says where there is no repository, in its own language.
const notGit = "not a git repository"

func inGit(root string) bool {
	for d := root; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return true
		}
		if d == filepath.Dir(d) {
			return false
		}
	}
}

// tame keeps git from running what a repository configures.
var tame = []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}

func gitEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "GIT_CONFIG_GLOBAL=") && !strings.HasPrefix(kv, "GIT_CONFIG_SYSTEM=")
	})
	// A partial clone would fetch what it lacks with a command of its own choice.
	return append(env, "LC_ALL=C", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
}

// git runs git so that nothing the repository configures is executed.
func git(ctx context.Context, root string, args ...string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, gitMax)
	defer cancel()
	cmd := exec.CommandContext(within, "git", append(slices.Clone(tame), append([]string{"-C", root}, args...)...)...)
	cmd.Env = gitEnv()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case within.Err() != nil:
		err = fmt.Errorf("git gave no answer within %v; a file that it reads, such as .gitignore, may be a pipe", gitMax)
	case err != nil && stderr.Len() > 0:
		err = errors.New(strings.TrimSpace(firstLine(stderr.String())))
	}
	return out, err
}

// gitMax is how long git may look at a repository.
const gitMax = 2 * time.Minute

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// Report says the plan in a few lines: what goes up, or of what Existing or Renew
// looked at did; what stays and why.
func (p *Plan) Report(w io.Writer) {
	if p.there == nil {
		files := 0
		for _, item := range p.Items {
			if !item.Mode.IsDir() {
				files++
			}
		}
		fmt.Fprintf(w, "%s, %s", Count(files, "file"), Size(p.Bytes))
	} else {
		sent, bytes := 0, int64(0)
		for name, e := range p.sent {
			if !p.there[name] && e.Kind != Dir {
				sent, bytes = sent+1, bytes+e.Size
			}
		}
		fmt.Fprintf(w, "%s in step, %d sent (%s)", Count(p.inStep, "file"), sent, Size(bytes))
	}
	var parts []string
	for _, why := range []Reason{SkipList, Excluded, GitIgnored, TooLarge, Secret, Outside, Special, Unreadable} {
		if n := len(p.Skipped[why]); n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", why, sample(p.Skipped[why], p.large)))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "; not sent: %s", strings.Join(parts, "; "))
	}
	fmt.Fprintln(w)
	for i, names := range p.Alike {
		if i == 5 {
			fmt.Fprintf(w, "note: and %d more such names\n", len(p.Alike)-i)
			break
		}
		fmt.Fprintf(w, "note: %s are sent as they are, but are one name where case or the form of accents does not count\n", sample(names, nil))
	}
	if len(p.filled) > 0 {
		fmt.Fprintf(w, "note: %s\n", Filled(p.filled))
	}
	for _, d := range p.Tracked {
		fmt.Fprintf(w, "note: %s is in git but was not sent; to send it: [sync] include = [%q]\n", d, d)
	}
}

// Filled says of sparse files that a sandbox has them without holes.
func Filled(names []string) string {
	if len(names) == 1 {
		return sample(names, nil) + " arrived without holes, as large as it reads: the sandbox's tar makes none"
	}
	return sample(names, nil) + " arrived without holes, as large as they read: the sandbox's tar makes none"
}

// sample lists a few names, quoted where they are odd, with what is known of them.
func sample(names []string, known map[string]string) string {
	var shown []string
	for i, n := range names {
		if i == 4 {
			shown = append(shown, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		if q := fmt.Sprintf("%q", n); q != `"`+n+`"` {
			n = q
		}
		if more := known[names[i]]; more != "" {
			n += " (" + more + ")"
		}
		shown = append(shown, n)
	}
	return strings.Join(shown, ", ")
}
