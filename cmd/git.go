package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talkops-ai/talkops/runtime/approval"
)

// gitRuns reports whether a git that only looks, or adds to the index, would run
// programs that the repository around dir names: in its configuration, the user's
// own left aside, in a hook, or in those of its submodules. What cannot be found
// out counts as that.
func gitRuns(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return repositoryRuns(ctx, dir, 0)
}

// shownFiles are the settings that name a file of which git says what is in it where
// that is not what it expects.
var shownFiles = []string{"blame.ignorerevsfile", "core.attributesfile", "core.excludesfile", "mailmap.file"}

// shows reports whether such a setting of the repository names a file that is not in it.
func shows(ctx context.Context, dir, setting string) bool {
	top, err := lookGit(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return true
	}
	values, err := lookGit(ctx, dir, "config", "--local", "--includes", "--get-all", setting)
	if err != nil {
		return true
	}
	top = real(strings.TrimRight(top, "\n"))
	for value := range strings.Lines(values) {
		value = strings.TrimRight(value, "\n")
		if strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%") {
			return true
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(top, value)
		}
		if at := real(value); value != "" && !strings.HasPrefix(at, top+string(filepath.Separator)) || approval.Secret("", filepath.ToSlash(value)) {
			return true
		}
	}
	return false
}

// elsewhere reports whether a file says that the repository around dir is in another
// place, without that place being a work tree's of that very file, or in the files
// around it: git would show what is there.
func elsewhere(ctx context.Context, dir string) bool {
	top, err := lookGit(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return ctx.Err() != nil
	}
	top = strings.TrimRight(top, "\n")
	info, err := os.Lstat(filepath.Join(top, ".git"))
	if err != nil || info.IsDir() {
		return false
	}
	at, err := lookGit(ctx, dir, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return true
	}
	at = real(strings.TrimRight(at, "\n"))
	if back, err := os.ReadFile(filepath.Join(at, "gitdir")); err == nil {
		return real(strings.TrimSpace(string(back))) != real(filepath.Join(top, ".git"))
	}
	around, err := lookGit(ctx, filepath.Dir(top), "rev-parse", "--absolute-git-dir")
	return err != nil || !strings.HasPrefix(at, real(strings.TrimRight(around, "\n"))+string(filepath.Separator)) // of a submodule
}

// maxSubmodules is how many submodules are looked into, and how deep.
const maxSubmodules, maxSubmoduleDepth = 200, 5

func repositoryRuns(ctx context.Context, dir string, depth int) bool {
	if _, err := os.Stat(dir); err != nil || depth > maxSubmoduleDepth {
		return true
	}
	settings, err := lookGit(ctx, dir, "config", "--local", "--includes", "--name-only", "--list")
	if err != nil {
		_, answered := errors.AsType[*exec.ExitError](err)
		// Else there is no repository, or no git.
		return ctx.Err() != nil || !answered && !errors.Is(err, exec.ErrNotFound)
	}
	if elsewhere(ctx, dir) {
		return true
	}
	for name := range strings.Lines(settings) {
		name = strings.ToLower(strings.TrimSpace(name))
		if namesProgram(name) || slices.Contains(shownFiles, name) && shows(ctx, dir, name) {
			return true
		}
	}
	// The one hook that also runs where git only looks: it may write what it found
	// out about files into the index.
	hook, err := lookGit(ctx, dir, "rev-parse", "--git-path", "hooks/post-index-change")
	if err != nil {
		return true
	}
	if hook = strings.TrimRight(hook, "\n"); !filepath.IsAbs(hook) {
		if inside, err := lookGit(ctx, dir, "rev-parse", "--is-inside-git-dir"); !strings.Contains(filepath.ToSlash(hook), ".git/") && (err != nil || strings.TrimSpace(inside) != "true") {
			return true // the user's own settings look for hooks among the files
		}
		hook = filepath.Join(dir, hook)
	}
	if info, err := os.Stat(hook); err == nil && info.Mode()&0o111 != 0 {
		return true
	}
	top, err := lookGit(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return ctx.Err() != nil // a bare repository has no files
	}
	top = strings.TrimRight(top, "\n")
	files, err := lookGit(ctx, top, "ls-files", "--stage", "-z")
	if err != nil {
		return true
	}
	seen := 0
	for entry := range strings.SplitSeq(files, "\x00") {
		if !strings.HasPrefix(entry, "160000 ") {
			continue
		}
		_, name, _ := strings.Cut(entry, "\t")
		sub := filepath.Join(top, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil {
			continue // it was never fetched
		}
		if seen++; seen > maxSubmodules || repositoryRuns(ctx, sub, depth+1) {
			return true
		}
	}
	return false
}

// embeds reports whether below root lies a repository of its own that names programs to
// run, or a HEAD, beside which a directory or two make one. A tree that is too large to
// look through counts as one.
func embeds(root string) bool {
	const most = 200_000
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	seen, found := 0, false
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		switch base := strings.ToLower(filepath.Base(name)); {
		case err != nil || name == root:
		case base == ".git":
			if at := filepath.Dir(name); at != root && repositoryRuns(ctx, at, 0) {
				found = true
				return fs.SkipAll
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		case base == "head" && !d.IsDir():
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil || seen > most
}

// foreign reports whether a directory has settings of terraform's that came with the
// repository: they name the machine that is asked for the state. So does a directory
// whose files say how tofu reads it: by a program, or by a service that takes a login.
func foreign(dir string) bool {
	files, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return true
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".json"); !strings.HasSuffix(name, ".tf") && !strings.HasSuffix(name, ".tofu") {
			continue
		}
		name := filepath.Join(dir, f.Name())
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return true
		}
		data, err := os.ReadFile(name)
		text := string(data)
		escaped := strings.Contains(text, `\u`)
		if err != nil || escaped || encrypts.MatchString(text) && strings.Contains(text, "method") {
			return true
		}
	}
	settings := filepath.Join(dir, ".terraform", "terraform.tfstate")
	if _, err := os.Stat(settings); err != nil {
		return !os.IsNotExist(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// A repository that lies among the files keeps what it likes out of its index.
	at, err := lookGit(ctx, dir, "rev-parse", "--absolute-git-dir")
	if err != nil || !slices.Contains(strings.Split(filepath.ToSlash(strings.TrimRight(at, "\n")), "/"), ".git") {
		return true
	}
	// What the repository brings may have been moved, or taken from the index, since.
	args := []string{"ls-files", "--", ":(top,icase,glob)**/.terraform", ":(top,icase,glob)**/.terraform/**"}
	if _, err := lookGit(ctx, dir, "rev-parse", "--quiet", "--verify", "HEAD"); err == nil {
		args = slices.Insert(args, 1, "--with-tree=HEAD")
	}
	tracked, err := lookGit(ctx, dir, args...)
	return err != nil || tracked != ""
}

// encrypts finds the block of tofu's, which is no part of a longer name.
var encrypts = regexp.MustCompile(`\bencryption\b`)

// lookGit runs a git that obeys nothing but what it is asked for.
func lookGit(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	cmd.Env = append(bareEnv(cmd.Environ()), "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.Output()
	return string(out), err
}

// gitStarts reports whether a git that only looks at dir may start a program by its name,
// as the user's own settings say, of which the project's attributes choose.
func gitStarts(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "config", "--name-only", "--list")
	cmd.Env = bareEnv(cmd.Environ())
	out, err := cmd.Output()
	if err != nil {
		return !errors.Is(err, exec.ErrNotFound)
	}
	return slices.ContainsFunc(strings.Fields(strings.ToLower(string(out))), func(name string) bool {
		return strings.HasPrefix(name, "filter.") || strings.HasPrefix(name, "diff.") && (strings.HasSuffix(name, ".textconv") || strings.HasSuffix(name, ".command") || name == "diff.external") || name == "core.fsmonitor"
	})
}

// bareEnv is an environment without what makes the system load other code into programs.
func bareEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return strings.HasPrefix(kv, "LD_") || strings.HasPrefix(kv, "DYLD_") })
}

// namesProgram reports whether a setting of git's, in lower case, may name a program or
// another file of settings: whether it is none of those that are known to do neither.
func namesProgram(name string) bool {
	section, _, _ := strings.Cut(name, ".")
	known, is := harmlessSettings[section]
	return !is || len(known) > 0 && !slices.Contains(known, name[strings.LastIndex(name, ".")+1:])
}

// harmlessSettings are the settings of repositories, by their section and last name, that
// name neither a program nor another file of settings; of an empty list all in the section.
// From git's own documentation of 2.47, and of what is written by gh and VS Code.
var harmlessSettings = map[string][]string{
	"core": strings.Fields("repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf excludesfile abbrev compression loosecompression quotepath whitespace untrackedcache preloadindex " +
		"bigfilethreshold sharedrepository longpaths protecthfs protectntfs commentchar commentstring hidedotfiles trustctime checkstat checkroundtripencoding splitindex sparsecheckout sparsecheckoutcone multipackindex commitgraph fscache fsync fsyncmethod unsetenvvars deltabasecachelimit packedgitlimit packedgitwindowsize warnambiguousrefs filesreflocktimeout maxtreedepth"),
	"remote":    strings.Fields("url fetch pushurl push tagopt prune prunetags mirror skipdefaultupdate skipfetchall pushdefault gh-resolved followremotehead"),
	"branch":    strings.Fields("remote merge rebase pushremote description autosetupmerge autosetuprebase sort vscode-merge-base gh-merge-base github-pr-owner-number base"),
	"user":      strings.Fields("name email signingkey useconfigonly"),
	"author":    strings.Fields("name email"),
	"committer": strings.Fields("name email"),
	"init":      strings.Fields("defaultbranch defaultobjectformat defaultrefformat"),
	"push":      strings.Fields("default autosetupremote followtags recursesubmodules gpgsign useforceifincludes"),
	"pull":      strings.Fields("rebase ff"),
	"fetch":     strings.Fields("prune prunetags fsckobjects unpacklimit output parallel recursesubmodules showforcedupdates writecommitgraph all"),
	"color":     {}, "column": {}, "advice": {}, "status": {}, "rerere": {}, "index": {}, "feature": {}, "receive": {}, "blame": {}, "rebase": {},
	"merge":       strings.Fields("conflictstyle ff log renames renamelimit stat directoryrenames renormalize suppressdest verbosity autostash branchdesc tool verifysignatures"),
	"diff":        strings.Fields("algorithm renames renamelimit colormoved colormovedws mnemonicprefix noprefix context interhunkcontext indentheuristic submodule ignoresubmodules wordregex statgraphwidth statnamewidth dirstat relative srcprefix dstprefix autorefreshindex suppressblankempty tool wserrorhighlight"),
	"log":         strings.Fields("date decorate follow abbrevcommit mailmap showroot graphcolors excludedecoration initialdecorationset diffmerges"),
	"lfs":         strings.Fields("repositoryformatversion access locksverify url"),
	"submodule":   strings.Fields("url active branch ignore fetchrecursesubmodules shallow recurse fetchjobs path alternatelocation alternateerrorstrategy propagatebranches"),
	"gc":          strings.Fields("auto autodetach autopacklimit aggressivedepth aggressivewindow pruneexpire reflogexpire reflogexpireunreachable rerereresolved rerereunresolved worktreepruneexpire writecommitgraph packrefs logexpiry bigpackthreshold cruftpacks"),
	"pack":        strings.Fields("threads window windowmemory depth compression deltacachesize deltacachelimit packsizelimit indexversion usebitmaps writebitmaphashcache writebitmaplookuptable writereverseindex readreverseindex usesparse preferbitmaptips island"),
	"tag":         strings.Fields("sort gpgsign forcesignannotated"),
	"commit":      strings.Fields("gpgsign cleanup verbose status"),
	"grep":        strings.Fields("linenumber column patterntype extendedregexp threads fullname fallbacktonoindex"),
	"extensions":  strings.Fields("objectformat compatobjectformat refstorage relativeworktrees noop preciousobjects"),
	"transfer":    strings.Fields("fsckobjects hiderefs unpacklimit credentialsinurl advertisesid"),
	"worktree":    strings.Fields("guessremote userelativepaths"),
	"checkout":    strings.Fields("defaultremote guess workers thresholdforparallelism"),
	"maintenance": strings.Fields("auto strategy autodetach enabled schedule"),
	"http":        strings.Fields("postbuffer version lowspeedlimit lowspeedtime maxrequests maxrequestbuffer"),
	"stash":       strings.Fields("showincludeuntracked showpatch showstat"),
}
